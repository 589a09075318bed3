#!/bin/sh
# Makes the certificates of these tests anew: an authority, two certificates for the gateway, one for a client.
set -eu
cd "$(dirname "$0")"
key() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1-key.pem"
}
key authority
openssl req -x509 -new -key authority-key.pem -days 36500 -subj "/CN=test authority" -out authority.pem \
    -addext "keyUsage=critical,keyCertSign"
for name in first second client; do
    key "$name"
    openssl req -new -key "$name-key.pem" -subj "/CN=$name" -out "$name.csr"
    printf 'subjectAltName=DNS:%s.test,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' "$name" >extensions
    openssl x509 -req -in "$name.csr" -CA authority.pem -CAkey authority-key.pem -CAcreateserial -days 36500 \
        -extfile extensions -out "$name.pem"
    rm "$name.csr" extensions
done
rm authority-key.pem authority.srl
