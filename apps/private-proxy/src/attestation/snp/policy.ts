import { AttestationError } from '../attestation-verifier.ts';
import type { FirmwareVersion, ProcessorId, SnpReport, Tcb } from './report.ts';

/** The oldest firmware of a processor that is trusted: below it, a known attack breaks the guest's protection. */
export interface FirmwareFloor extends ProcessorId {
  /** What it is sold as. */
  readonly processor: string;
  readonly firmware: FirmwareVersion;
  /** Microcode is numbered anew for each stepping, so a floor is for one stepping. */
  readonly tcb: Tcb;
  /** Whether the machine must have checked its memory for aliases (BadRAM). */
  readonly aliasCheck: boolean;
  /** AMD's security bulletins that say so. */
  readonly sources: readonly string[];
}

const MIGRATION_AGENT = 1n << 18n;
const DEBUG = 1n << 19n;
const CXL = 1n << 21n;
const ALIAS_CHECK_COMPLETE = 1n << 5n;

/**
 * Whether nobody but the guest can see what it does, as far as an authentic report shows it.
 * @returns the floor that it is above
 * @throws AttestationError
 */
export function assertPolicy(report: SnpReport, floors: readonly FirmwareFloor[]): FirmwareFloor {
  const floor = selectFloor(report.processor, floors);
  if ((report.guestPolicy & DEBUG) !== 0n)
    throw new AttestationError('its operator may debug it, and so read its memory');
  if ((report.guestPolicy & MIGRATION_AGENT) !== 0n)
    throw new AttestationError('its operator may move it to another machine');
  if ((report.guestPolicy & CXL) !== 0n)
    throw new AttestationError('its memory may be in devices that are not protected');
  if (report.vmpl !== 0)
    throw new AttestationError(`its report was not asked for by its own system (VMPL ${report.vmpl})`);
  if (floor.aliasCheck && (report.platform & ALIAS_CHECK_COMPLETE) === 0n) {
    throw new AttestationError('its machine has not checked its memory for aliases');
  }
  assertFirmwareLevels(report, floor);
  return floor;
}

function selectFloor(processor: ProcessorId | undefined, floors: readonly FirmwareFloor[]): FirmwareFloor {
  const floor = floors.find(
    ({ family, model, stepping }) =>
      family === processor?.family && model === processor.model && stepping === processor.stepping,
  );
  if (floor === undefined) throw new AttestationError('its processor is not one that this proxy trusts');
  return floor;
}

/**
 * The floor, what the chip signed with, what it can no longer go back behind, and what runs: each at least the one before.
 * What the guest was launched with may be older than what runs, and is not below the floor either.
 */
function assertFirmwareLevels(report: SnpReport, floor: FirmwareFloor): void {
  const { reportedTcb, committedTcb, currentTcb, launchTcb, committedFirmware, currentFirmware } = report;
  const steps: readonly (readonly [Tcb, Tcb])[] = [
    [floor.tcb, reportedTcb],
    [reportedTcb, committedTcb],
    [committedTcb, currentTcb],
    [floor.tcb, launchTcb],
    [launchTcb, currentTcb],
  ];
  if (!steps.every(([low, high]) => meetsFloor(high, low))) {
    throw new AttestationError(
      `the firmware of its processor is too old: ${formatLevels(reportedTcb)}, at least ${formatLevels(floor.tcb)}`,
    );
  }
  const versions = [floor.firmware, committedFirmware, currentFirmware].map(toVersionNumber);
  if (versions.some((version, i) => version < (versions[i - 1] ?? 0))) {
    throw new AttestationError('the firmware of its processor is too old');
  }
}

function meetsFloor(tcb: Tcb, floor: Tcb): boolean {
  return (Object.keys(floor) as (keyof Tcb)[]).every((part) => tcb[part] >= floor[part]);
}

function toVersionNumber({ major, minor, build }: FirmwareVersion): number {
  return (major << 16) | (minor << 8) | build;
}

function formatLevels({ bootloader, tee, snp, microcode }: Tcb): string {
  return `boot loader ${bootloader}, TEE ${tee}, SNP ${snp}, microcode ${microcode}`;
}
