import { expect, test } from '@jest/globals';
import { sampleCases } from '#testing';
import { AttestationError } from '../attestation-verifier.ts';
import { loadPinnedAnchors } from '../trust-anchors.ts';
import vector from '../vectors/amd-report.json' with { type: 'json' };
import type { AmdRoot } from './chip-key.ts';
import { assertPolicy } from './policy.ts';
import { verifyReport } from './verify-report.ts';

const REPORT = Buffer.from(vector.report, 'base64');
const CHIP = Buffer.from(vector.vcek, 'base64');
const WHEN = new Date('2023-01-01T00:00:00Z'); // the certificate of the chip is from September 2022
const { amd, floors } = loadPinnedAnchors();
const MILAN = { product: 'Milan', ark: vector.ark, ask: vector.ask };

interface Shown {
  readonly report?: Buffer;
  readonly chip?: Buffer;
  readonly roots?: readonly AmdRoot[];
  readonly now?: Date;
}

function authentic({ report = REPORT, chip = CHIP, roots = amd, now = WHEN }: Shown = {}): boolean {
  try {
    verifyReport(report, chip, { amd: roots, now });
    return true;
  } catch (error) {
    if (error instanceof AttestationError) return false;
    throw error;
  }
}

function flipped(bytes: Buffer, at: number, bit = at % 8): Buffer {
  const other = Buffer.from(bytes);
  other[at] = (other[at] ?? 0) ^ (1 << bit);
  return other;
}

/**
 * Yields a copy for every `step`th byte, with one bit of that byte changed. `npm run prove:attestation` changes every
 * bit.
 */
function* someChanged(bytes: Buffer, step: number): Iterable<readonly [at: number, other: Buffer]> {
  for (let at = 0; at < bytes.length; at += step) yield [at, flipped(bytes, at)];
}

/**
 * Yields a changed copy for every 61st byte, for each of the first 8 bytes (the headers), for each of the 8 bytes
 * before the signature, and for the first byte of the signature.
 */
function* certificateChanged(bytes: Buffer): Iterable<readonly [at: number, other: Buffer]> {
  yield* someChanged(bytes, 61);
  for (let at = 0; at < 8; at++) yield [at, flipped(bytes, at)];
  for (let at = bytes.length - 520; at < bytes.length - 511; at++) yield [at, flipped(bytes, at)];
}

test('verifies a report of a real processor with AMD’s pinned roots', () => {
  expect(amd).toContainEqual(MILAN);
  const { report, product } = verifyReport(REPORT, CHIP, { amd, now: WHEN });
  expect(product).toBe('Milan');
  expect(report).toMatchObject({
    version: 2,
    guestPolicy: 0xb_0000n,
    vmpl: 0,
    reportedTcb: { fmc: 0, bootloader: 2, tee: 0, snp: 5, microcode: 68 },
    currentFirmware: { major: 1, minor: 49, build: 3 },
  });
  expect(report.reportData.subarray(0, 6)).toEqual(Buffer.of(1, 2, 3, 4, 5, 0));
});

test('rejects an authentic report if its guest can be debugged or its processor is not trusted', () => {
  const { report } = verifyReport(REPORT, CHIP, { amd, now: WHEN });
  expect(() => assertPolicy(report, floors)).toThrow('its processor is not one that this proxy trusts');
  const processor = { family: 0x19, model: 1, stepping: 1 };
  const floor = { ...processor, processor: 'Milan', firmware: report.currentFirmware, tcb: report.launchTcb };
  const lenient = [{ ...floor, aliasCheck: false, sources: [] }];
  expect(() => assertPolicy({ ...report, processor }, lenient)).toThrow('its operator can debug it');
  expect(assertPolicy({ ...report, processor, guestPolicy: 0x3_0000n }, lenient)).toBe(lenient[0]);
});

test('rejects a report if one bit of a sampled byte is changed, or if a byte is appended', () => {
  const passed = sampleCases([...someChanged(REPORT, 11)], 30).filter(([, report]) => authentic({ report }));
  expect(passed.map(([at]) => at)).toEqual([]);
  expect(authentic({ report: Buffer.concat([REPORT, Buffer.of(0)]) })).toBe(false);
});

test('rejects the certificates from the chip to the root if one bit of a sampled byte is changed', () => {
  const root = (ark: Buffer, ask: Buffer) => [
    { product: 'Milan', ark: ark.toString('base64'), ask: ask.toString('base64') },
  ];
  const [ark, ask] = [Buffer.from(MILAN.ark, 'base64'), Buffer.from(MILAN.ask, 'base64')];
  expect(authentic({ roots: root(ark, ask) })).toBe(true);
  const passed = [
    ...sampleCases([...certificateChanged(CHIP)], 20).filter(([, chip]) => authentic({ chip })),
    ...sampleCases([...certificateChanged(ask)], 20).filter(([, other]) => authentic({ roots: root(ark, other) })),
    ...sampleCases([...certificateChanged(ark)], 20).filter(([, other]) => authentic({ roots: root(other, ask) })),
  ];
  expect(passed.map(([at]) => at)).toEqual([]);
  expect(authentic({ chip: Buffer.concat([CHIP, Buffer.of(0)]) })).toBe(false);
});

test('rejects a certificate outside of its validity, without a pinned root of its product, or not of a chip', () => {
  expect(authentic({ now: new Date('2022-09-01T00:00:00Z') })).toBe(false);
  expect(authentic({ now: new Date('2029-10-01T00:00:00Z') })).toBe(false);
  expect(authentic({ roots: amd.filter(({ product }) => product !== 'Milan') })).toBe(false);
  expect(authentic({ roots: [{ ...MILAN, product: 'Genoa' }] })).toBe(false);
  expect(authentic({ chip: Buffer.from(MILAN.ask, 'base64') })).toBe(false);
});
