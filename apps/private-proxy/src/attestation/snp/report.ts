import { AttestationError } from '../attestation-verifier.ts';

/**
 * What an AMD processor signs about a guest.
 * @see SEV Secure Nested Paging Firmware ABI Specification (AMD 56860), ATTESTATION_REPORT; all numbers are little-endian
 */
export interface SnpReport {
  readonly version: number;
  /** CPUID of the processor, which reports have from version 3 on. */
  readonly processor?: ProcessorId;
  /** What the guest was launched with, by bit. */
  readonly guestPolicy: bigint;
  /** How the machine was set up, by bit. */
  readonly platform: bigint;
  /** The privilege level of who asked within the guest; 0 is the highest. */
  readonly vmpl: number;
  /** 64 bytes that the guest chose. */
  readonly reportData: Buffer;
  /** The digest of what the guest was launched with, 48 bytes. */
  readonly measurement: Buffer;
  readonly currentTcb: Tcb;
  readonly committedTcb: Tcb;
  readonly reportedTcb: Tcb;
  readonly launchTcb: Tcb;
  /** The chip by which the report was signed, 64 bytes. */
  readonly chipId: Buffer;
  readonly currentFirmware: FirmwareVersion;
  readonly committedFirmware: FirmwareVersion;
  readonly signedBytes: Buffer;
  /** R and S, big-endian, 48 bytes each. */
  readonly signature: Buffer;
}

export interface ProcessorId {
  readonly family: number;
  readonly model: number;
  readonly stepping: number;
}

/** The security patch levels of what AMD's protection rests on. `fmc` is there from Turin on, and 0 before. */
export interface Tcb {
  readonly fmc: number;
  readonly bootloader: number;
  readonly tee: number;
  readonly snp: number;
  readonly microcode: number;
}

export interface FirmwareVersion {
  readonly major: number;
  readonly minor: number;
  readonly build: number;
}

export const REPORT_BYTES = 0x4a0;
const SIGNATURE_OFFSET = 0x2a0;
const SIGNATURE_NUMBER_BYTES = 72; // of R and of S, of which a P-384 signature uses 48
const P384_BYTES = 48;

const SUPPORTED_VERSIONS = [2, 3, 5]; // of ABI 1.55, 1.56 and 1.58
const ECDSA_P384_SHA384 = 1;
const MUST_BE_ONE = 1n << 17n;
const POLICY_BITS = 26n;
const PLATFORM_BITS = 8n;
const TURIN_FAMILY = 0x1a;
const MASK_CHIP_KEY = 0b10;
const SIGNING_KEY = 0b11100;

/** @throws AttestationError for what is no report of a known version, or has something in reserved fields */
export function parseReport(bytes: Buffer): SnpReport {
  if (bytes.length !== REPORT_BYTES)
    throw new AttestationError(`its report has ${bytes.length} bytes and not ${REPORT_BYTES}`);
  const version = bytes.readUInt32LE(0);
  if (!SUPPORTED_VERSIONS.includes(version))
    throw new AttestationError(`its report has version ${version}, which this proxy does not know`);
  for (const [from, to] of listReservedRanges(version))
    assertZero(bytes.subarray(from, to), `bytes ${from} to ${to - 1}`);
  assertChipSigner(bytes);

  const processor = version === 2 ? undefined : readProcessor(bytes, 0x188);
  const readTcb = processor?.family === TURIN_FAMILY ? readTurinTcb : readPreTurinTcb;
  return {
    version,
    processor,
    guestPolicy: parseGuestPolicy(bytes),
    platform: parsePlatform(bytes),
    vmpl: bytes.readUInt32LE(0x30),
    reportData: bytes.subarray(0x50, 0x90),
    measurement: bytes.subarray(0x90, 0xc0),
    currentTcb: readTcb(bytes, 0x38),
    committedTcb: readTcb(bytes, 0x1e0),
    reportedTcb: readTcb(bytes, 0x180),
    launchTcb: readTcb(bytes, 0x1f0),
    chipId: bytes.subarray(0x1a0, 0x1e0),
    currentFirmware: readFirmware(bytes, 0x1e8),
    committedFirmware: readFirmware(bytes, 0x1ec),
    signedBytes: bytes.subarray(0, SIGNATURE_OFFSET),
    signature: Buffer.concat([
      readBigEndian(bytes, SIGNATURE_OFFSET),
      readBigEndian(bytes, SIGNATURE_OFFSET + SIGNATURE_NUMBER_BYTES),
    ]),
  };
}

/** Version 3 put the processor's CPUID, version 5 two vectors of mitigations where there were zeros. */
function listReservedRanges(version: number): readonly (readonly [from: number, to: number])[] {
  return [
    [0x4c, 0x50],
    [version < 3 ? 0x188 : 0x18b, 0x1a0],
    [0x1eb, 0x1ec],
    [0x1ef, 0x1f0],
    [version < 5 ? 0x1f8 : 0x208, SIGNATURE_OFFSET],
    [SIGNATURE_OFFSET + P384_BYTES, SIGNATURE_OFFSET + SIGNATURE_NUMBER_BYTES],
    [SIGNATURE_OFFSET + SIGNATURE_NUMBER_BYTES + P384_BYTES, REPORT_BYTES],
  ];
}

/** Only the key of the chip itself (VCEK) will do: that of a cloud's operator (VLEK) says nothing about the machine. */
function assertChipSigner(bytes: Buffer): void {
  const algorithm = bytes.readUInt32LE(0x34);
  if (algorithm !== ECDSA_P384_SHA384)
    throw new AttestationError(`its report has signature algorithm ${algorithm} and not 1`);
  const signer = bytes.readUInt32LE(0x48);
  if (signer >>> 5 !== 0) throw new AttestationError('its report has reserved bits set beside its signer');
  if ((signer & SIGNING_KEY) !== 0) throw new AttestationError('its report is not signed by the key of a chip');
  if ((signer & MASK_CHIP_KEY) !== 0) throw new AttestationError('its report does not say which chip signed it');
}

function parseGuestPolicy(bytes: Buffer): bigint {
  const policy = bytes.readBigUInt64LE(0x08);
  if ((policy & MUST_BE_ONE) === 0n || policy >> POLICY_BITS !== 0n) {
    throw new AttestationError('its report has reserved bits set wrongly in the policy of the guest');
  }
  return policy;
}

/** What a bit means that AMD has not defined yet cannot be judged. */
function parsePlatform(bytes: Buffer): bigint {
  const platform = bytes.readBigUInt64LE(0x40);
  if (platform >> PLATFORM_BITS !== 0n) throw new AttestationError('its report has unknown bits set about the machine');
  return platform;
}

function readProcessor(bytes: Buffer, offset: number): ProcessorId {
  return { family: bytes.readUInt8(offset), model: bytes.readUInt8(offset + 1), stepping: bytes.readUInt8(offset + 2) };
}

function readPreTurinTcb(bytes: Buffer, offset: number): Tcb {
  assertZero(bytes.subarray(offset + 2, offset + 6), `bytes ${offset + 2} to ${offset + 5}`);
  const readLevel = (byte: number) => bytes.readUInt8(offset + byte);
  return { fmc: 0, bootloader: readLevel(0), tee: readLevel(1), snp: readLevel(6), microcode: readLevel(7) };
}

function readTurinTcb(bytes: Buffer, offset: number): Tcb {
  assertZero(bytes.subarray(offset + 4, offset + 7), `bytes ${offset + 4} to ${offset + 6}`);
  const readLevel = (byte: number) => bytes.readUInt8(offset + byte);
  return { fmc: readLevel(0), bootloader: readLevel(1), tee: readLevel(2), snp: readLevel(3), microcode: readLevel(7) };
}

function readFirmware(bytes: Buffer, offset: number): FirmwareVersion {
  return { build: bytes.readUInt8(offset), minor: bytes.readUInt8(offset + 1), major: bytes.readUInt8(offset + 2) };
}

function readBigEndian(bytes: Buffer, offset: number): Buffer {
  return Buffer.from(bytes.subarray(offset, offset + P384_BYTES)).reverse();
}

function assertZero(reserved: Buffer, name: string): void {
  if (reserved.some((byte) => byte !== 0)) throw new AttestationError(`its report has something in reserved ${name}`);
}
