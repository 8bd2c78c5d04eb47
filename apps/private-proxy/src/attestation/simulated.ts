import { NotAttested, readOrRefuse, type VerifiedEnclave } from './attestation-verifier.ts';
import { type AttestationBundle, base64In, recordIn, textIn } from './bundle.ts';

/** The format by which the sandbox's enclave says that it proves nothing. */
export const SIMULATED = 'simulated';

const MAX_BODY = 4096; // bytes; a key and a model id

/** The key that a simulated enclave names: whoever answers could name any. */
export function simulatedEnclave({ report }: AttestationBundle): VerifiedEnclave {
  const body = base64In(report.body, 'the body of the report', MAX_BODY).toString('utf8');
  const parsed: unknown = readOrRefuse('the body of the report is no JSON', () => JSON.parse(body));
  const { hpke_public_key: key } = recordIn(parsed, 'the body of the report');
  const hex = textIn(key, 'hpke_public_key', 64);
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new NotAttested('hpke_public_key is not 64 hex digits');
  return { publicKey: new Uint8Array(Buffer.from(hex, 'hex')), simulated: true };
}
