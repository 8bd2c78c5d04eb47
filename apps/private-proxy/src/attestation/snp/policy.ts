import { AttestationError } from '../attestation-verifier.ts';
import type { FirmwareVersion, ProcessorId, SnpReport, Tcb } from './report.ts';

/** The oldest trusted firmware of a processor. Known attacks break the guest's protection on older firmware. */
export interface FirmwareFloor extends ProcessorId {
  /** Product name. */
  readonly processor: string;
  readonly firmware: FirmwareVersion;
  /** Each stepping has its own microcode numbers, so a floor applies to one stepping. */
  readonly tcb: Tcb;
  /** Whether the host must have checked its memory for aliases (BadRAM). */
  readonly aliasCheck: boolean;
  /** AMD's security bulletins that require this floor. */
  readonly sources: readonly string[];
}

const MIGRATION_AGENT = 1n << 18n;
const DEBUG = 1n << 19n;
const CXL = 1n << 21n;
const ALIAS_CHECK_COMPLETE = 1n << 5n;

/**
 * Requires that an authentic report rules out debugging, migration, CXL memory, a less privileged requester and
 * untrusted firmware.
 * @returns the firmware floor of the report's processor
 * @throws AttestationError
 */
export function assertPolicy(report: SnpReport, floors: readonly FirmwareFloor[]): FirmwareFloor {
  const floor = selectFloor(report.processor, floors);
  if ((report.guestPolicy & DEBUG) !== 0n) throw new AttestationError('its operator can debug it and read its memory');
  if ((report.guestPolicy & MIGRATION_AGENT) !== 0n)
    throw new AttestationError('its operator can migrate it to another host');
  if ((report.guestPolicy & CXL) !== 0n)
    throw new AttestationError('its memory can be in CXL devices, which are not protected');
  if (report.vmpl !== 0)
    throw new AttestationError(`its report was not requested at the highest privilege level (VMPL ${report.vmpl})`);
  if (floor.aliasCheck && (report.platform & ALIAS_CHECK_COMPLETE) === 0n) {
    throw new AttestationError('its host has not checked its memory for aliases');
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
 * Requires levels with floor ≤ reported ≤ committed ≤ current, and floor ≤ launch ≤ current. For firmware versions,
 * requires floor ≤ committed ≤ current. The chip signed with a key for the reported levels. Its firmware cannot be
 * rolled back below the committed levels. The current levels are running now, and may be newer than those at the launch
 * of the guest.
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
      `the firmware of its processor is too old, or its levels are inconsistent: ${formatLevels(reportedTcb)}; required: ${formatLevels(floor.tcb)}`,
    );
  }
  const versions = [floor.firmware, committedFirmware, currentFirmware].map(toVersionNumber);
  if (versions.some((version, i) => version < (versions[i - 1] ?? 0))) {
    throw new AttestationError('the firmware of its processor is too old, or its versions are inconsistent');
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
