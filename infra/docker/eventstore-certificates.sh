#!/bin/sh
# Usage: eventstore-certificates.sh CA_DIRECTORY NODE_DIRECTORY
#
# Creates certificates for the EventStoreDB of docker-compose.yml: ca.crt, which clients trust, in the first directory;
# node.crt and node.key in the second. If valid certificates exist, the script changes nothing until 30 days before they
# expire. Then it creates new ones from a new CA: restart the server first, then its clients. The private key of the CA
# is deleted, so that no one can issue another certificate that the clients trust.
set -eu
ca=$(cd "$1" && pwd) node=$(cd "$2" && pwd)
owner=1000 # the user id of the server in its image

if [ -r "$node/node.key" ] && openssl x509 -checkend 2592000 -noout -in "$node/node.crt" 2>/dev/null &&
  openssl verify -CAfile "$ca/ca.crt" "$node/node.crt" >/dev/null 2>&1; then
  echo "Valid certificates exist; nothing was changed."
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# EventStoreDB reads only RSA keys.
openssl req -new -newkey rsa:3072 -nodes -subj "/CN=countinghouse-ca" -keyout ca.key -out ca.csr
printf 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n' >ca.ext
openssl x509 -req -in ca.csr -signkey ca.key -days 3650 -extfile ca.ext -out ca.crt

openssl req -new -newkey rsa:3072 -nodes -subj "/CN=eventstoredb-node" -keyout node.key -out node.csr
cat >node.ext <<'END'
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=DNS:eventstore,DNS:localhost,IP:127.0.0.1
END
openssl x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile node.ext -out node.crt

# node.crt is moved last: if the script is interrupted before, its next run creates all files again.
rm -f "$node/node.crt"
chmod 644 ca.crt node.crt
chmod 400 node.key
[ "$(id -u)" != 0 ] || chown "$owner" ca.crt node.crt node.key
mv -f ca.crt "$ca/"
mv -f node.key "$node/"
mv -f node.crt "$node/"
echo "New certificates were created: restart the server first, then the roles."
