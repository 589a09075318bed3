// Display names of the kinds of alerts.

export const KINDS = { low_balance: 'Low balance', key_limit: 'Key near its limit', channel_down: 'Channel down', error_rate: 'Errors above normal', stuck_closes: 'Calls that cannot be booked' };

/** Kinds that concern one wallet. */
export const OF_WALLETS = ['low_balance', 'key_limit'];
