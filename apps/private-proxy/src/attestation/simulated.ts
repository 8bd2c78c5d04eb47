import { AttestationError, type VerifiedEnclave, withAttestationError } from './attestation-verifier.ts';
import { type AttestationBundle, parseBase64, parseBundleObject, parseBundleText } from './bundle.ts';

/** The report format of enclaves without evidence, such as the sandbox's. */
export const SIMULATED_FORMAT = 'simulated';

const MAX_REPORT_BODY_BYTES = 4096; // enough for a key and a model id

/**
 * Returns the key that a simulated enclave states. The key is not authenticated: the gateway or the network could have
 * replaced it.
 * @throws AttestationError for a malformed report
 */
export function parseSimulatedEnclave({ report }: AttestationBundle): VerifiedEnclave {
  const body = parseBase64(report.body, 'the body of the report', MAX_REPORT_BODY_BYTES).toString('utf8');
  const parsed: unknown = withAttestationError('the body of the report is not JSON', () => JSON.parse(body));
  const { hpke_public_key: key } = parseBundleObject(parsed, 'the body of the report');
  const hex = parseBundleText(key, 'hpke_public_key', 64);
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new AttestationError('hpke_public_key is not 64 hex digits');
  return { publicKey: new Uint8Array(Buffer.from(hex, 'hex')), isSimulated: true };
}
