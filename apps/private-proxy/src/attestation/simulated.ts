import { AttestationError, type VerifiedEnclave, withAttestationError } from './attestation-verifier.ts';
import { type AttestationBundle, parseBase64, parseBundleObject, parseBundleText } from './bundle.ts';

/** The format by which the sandbox's enclave says that it proves nothing. */
export const SIMULATED_FORMAT = 'simulated';

const MAX_REPORT_BODY_BYTES = 4096; // bytes; a key and a model id

/** The key that a simulated enclave names: whoever answers could name any. */
export function parseSimulatedEnclave({ report }: AttestationBundle): VerifiedEnclave {
  const body = parseBase64(report.body, 'the body of the report', MAX_REPORT_BODY_BYTES).toString('utf8');
  const parsed: unknown = withAttestationError('the body of the report is no JSON', () => JSON.parse(body));
  const { hpke_public_key: key } = parseBundleObject(parsed, 'the body of the report');
  const hex = parseBundleText(key, 'hpke_public_key', 64);
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new AttestationError('hpke_public_key is not 64 hex digits');
  return { publicKey: new Uint8Array(Buffer.from(hex, 'hex')), isSimulated: true };
}
