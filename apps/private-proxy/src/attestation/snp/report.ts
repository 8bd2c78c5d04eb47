import { AttestationError } from '../attestation-verifier.ts';

/**
 * The report that an AMD processor signs about a guest.
 * @see SEV Secure Nested Paging Firmware ABI Specification (AMD 56860), ATTESTATION_REPORT; numbers are little-endian
 */
export interface SnpReport {
  readonly version: number;
  /** CPUID of the processor, in reports of version 3 and later. */
  readonly processor?: ProcessorId;
  /** The policy that the guest was launched with: a bit field. */
  readonly guestPolicy: bigint;
  /** The configuration of the host: a bit field. */
  readonly platform: bigint;
  /** The privilege level of the guest software that requested the report. 0 is the highest, 0xffffffff the host. */
  readonly vmpl: number;
  /** 64 bytes chosen by the guest. */
  readonly reportData: Buffer;
  /** Launch digest of the guest, 48 bytes. */
  readonly measurement: Buffer;
  readonly currentTcb: Tcb;
  readonly committedTcb: Tcb;
  readonly reportedTcb: Tcb;
  readonly launchTcb: Tcb;
  /** Id of the chip that signed the report, 64 bytes. */
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

/**
 * Security version numbers of the firmware components that AMD's protection depends on (trusted computing base). `fmc`
 * exists since Turin; for older products it is 0.
 */
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
const SIGNATURE_NUMBER_BYTES = 72; // for R and S each; a P-384 signature uses 48 of them
const P384_BYTES = 48;

const SUPPORTED_VERSIONS = [2, 3, 5]; // of ABI versions 1.55, 1.56 and 1.58
const ECDSA_P384_SHA384 = 1;
const MUST_BE_ONE = 1n << 17n;
const POLICY_BITS = 26n;
const PLATFORM_BITS = 8n;
const TURIN_FAMILY = 0x1a;
const MASK_CHIP_KEY = 0b10;
const SIGNING_KEY = 0b11100;

/**
 * @throws AttestationError unless the bytes are a report of a supported version with valid reserved fields, which names
 * the key of a chip as its signer
 */
export function parseReport(bytes: Buffer): SnpReport {
  if (bytes.length !== REPORT_BYTES)
    throw new AttestationError(`its report has ${bytes.length} bytes instead of ${REPORT_BYTES}`);
  const version = bytes.readUInt32LE(0);
  if (!SUPPORTED_VERSIONS.includes(version))
    throw new AttestationError(`its report has version ${version}, which this proxy does not support`);
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

/**
 * Returns the ranges that must be zero. Version 3 added the processor's CPUID and version 5 two mitigation vectors in
 * ranges that were reserved before.
 */
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

/** Requires the key of the chip itself (VCEK). A cloud provider's key (VLEK) does not identify the host. */
function assertChipSigner(bytes: Buffer): void {
  const algorithm = bytes.readUInt32LE(0x34);
  if (algorithm !== ECDSA_P384_SHA384)
    throw new AttestationError(`its report has signature algorithm ${algorithm} instead of 1`);
  const signer = bytes.readUInt32LE(0x48);
  if (signer >>> 5 !== 0) throw new AttestationError('its report has reserved bits set in the field of its signer');
  if ((signer & SIGNING_KEY) !== 0) throw new AttestationError('its report is not signed by the key of a chip');
  if ((signer & MASK_CHIP_KEY) !== 0) throw new AttestationError('its report does not name the chip that signed it');
}

function parseGuestPolicy(bytes: Buffer): bigint {
  const policy = bytes.readBigUInt64LE(0x08);
  if ((policy & MUST_BE_ONE) === 0n || policy >> POLICY_BITS !== 0n) {
    throw new AttestationError('its report has invalid reserved bits in the guest policy');
  }
  return policy;
}

/** Rejects bits that AMD has not defined yet, because their meaning is unknown. */
function parsePlatform(bytes: Buffer): bigint {
  const platform = bytes.readBigUInt64LE(0x40);
  if (platform >> PLATFORM_BITS !== 0n) throw new AttestationError('its report has unknown bits set about the host');
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
  if (reserved.some((byte) => byte !== 0)) throw new AttestationError(`its report has data in reserved ${name}`);
}
