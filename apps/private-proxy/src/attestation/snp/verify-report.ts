import { verify } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AttestationError, withAttestationError } from '../attestation-verifier.ts';
import { type AmdRoot, type ChipKey, parseChipKey } from './chip-key.ts';
import { type ProcessorId, parseReport, type SnpReport } from './report.ts';

const TURIN_ID_BYTES = 8; // of the 64 bytes in a report; the rest are 0

/**
 * Verifies that a genuine AMD processor signed the report. The caller must still check its content with `assertPolicy`.
 * @param chipCertificate the certificate of the chip's key, DER
 * @throws AttestationError if the report or the certificate is malformed or not genuine, or they are of different chips
 */
export function verifyReport(
  report: Buffer,
  chipCertificate: Buffer,
  { amd, now }: { readonly amd: readonly AmdRoot[]; readonly now: Date },
): { readonly report: SnpReport; readonly product: string } {
  const parsedReport = parseReport(report);
  const key = withAttestationError('the certificate of its chip cannot be parsed', () =>
    parseChipKey(chipCertificate, amd, now),
  );
  assertSameChip(parsedReport, key);
  const signature = { key: key.publicKey, dsaEncoding: 'ieee-p1363' } as const;
  if (!verify('sha384', parsedReport.signedBytes, signature, parsedReport.signature))
    throw new AttestationError('the signature of its report is invalid');
  return { report: parsedReport, product: key.product };
}

/** AMD derives a chip's key from its firmware levels, so a certificate is for one chip at one set of levels. */
function assertSameChip({ processor, reportedTcb, chipId }: SnpReport, { product, tcb, hardwareId }: ChipKey): void {
  if (processor !== undefined && findProduct(processor) !== product) {
    throw new AttestationError('its report is for another product than the certificate of its chip');
  }
  if (!isDeepStrictEqual(reportedTcb, tcb)) {
    throw new AttestationError('its report has other firmware levels than the certificate of its chip');
  }
  const expected = product === 'Turin' ? Buffer.concat([hardwareId, Buffer.alloc(64 - TURIN_ID_BYTES)]) : hardwareId;
  if (!chipId.equals(expected)) throw new AttestationError('its report is from another chip than its certificate');
}

/** @see AMD 57230, product names by CPUID family and model */
function findProduct({ family, model }: ProcessorId): string | undefined {
  const models = model >> 4;
  if (family === 0x19) return { 0: 'Milan', 1: 'Genoa', 10: 'Genoa' }[models];
  if (family === 0x1a) return { 0: 'Turin', 1: 'Turin' }[models];
  return undefined;
}
