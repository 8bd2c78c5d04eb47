#!/bin/sh
# Certificates for the EventStoreDB of docker-compose.yml: ca.crt, which its clients trust, into the first directory; node.crt and
# node.key into the second. Run again it makes new ones where these end within 30 days, and else changes nothing. New ones are of
# another CA: restart the server first, then its clients. The key of the CA is thrown away: nobody can make another certificate that
# the clients trust.
set -eu
ca=$(cd "$1" && pwd) node=$(cd "$2" && pwd)
owner=1000 # the user of the image

if [ -r "$node/node.key" ] && openssl x509 -checkend 2592000 -noout -in "$node/node.crt" 2>/dev/null &&
  openssl verify -CAfile "$ca/ca.crt" "$node/node.crt" >/dev/null 2>&1; then
  echo "The certificates are there."
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# EventStoreDB reads keys of RSA alone.
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

# The certificate of the node goes last: without it all is made again.
rm -f "$node/node.crt"
chmod 644 ca.crt node.crt
chmod 400 node.key
[ "$(id -u)" != 0 ] || chown "$owner" ca.crt node.crt node.key
mv -f ca.crt "$ca/"
mv -f node.key "$node/"
mv -f node.crt "$node/"
echo "The certificates are new: restart the server first, then the roles."
