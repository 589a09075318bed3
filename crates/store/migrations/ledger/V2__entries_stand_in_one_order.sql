-- An index by wallet cost each call a page of its own. A wallet's numbers come in the order of the
-- table, and `ledger verify` proves them to be without gap or double.
DROP INDEX entries_in_order;
