import { generate } from 'selfsigned';

const DAY_MS = 86_400_000;
/** Types of names: RFC 5280, 4.2.1.6. */
const DNS_NAME = 2;
const IP_ADDRESS = 7;

/**
 * Creates a certificate like LND's own: P-256, self-signed, for `localhost` and 127.0.0.1. Each use creates its own, so
 * no key is stored. It is valid from yesterday to tomorrow.
 * @returns certificate and private key in PEM
 */
export async function createSelfSignedCertificate(): Promise<{ readonly cert: string; readonly key: string }> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'lnd' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(Date.now() - DAY_MS),
    notAfterDate: new Date(Date.now() + DAY_MS),
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: DNS_NAME, value: 'localhost' },
          { type: IP_ADDRESS, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  return { cert, key };
}
