import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { ia5, integer } from './der.ts';
import { createExtension, issueCertificate } from './issue.ts';

/** Content of a report. The defaults are those of a Genoa processor with recent firmware. */
export interface ReportParams {
  readonly version: number;
  readonly guestPolicy: bigint;
  readonly vmpl: number;
  readonly platform: bigint;
  readonly cpuid: readonly [family: number, model: number, stepping: number];
  /** The eight bytes of a TCB version in the report. */
  readonly tcb: readonly number[];
  readonly committedTcb?: readonly number[];
  readonly launchTcb?: readonly number[];
  readonly firmware: readonly [build: number, minor: number, major: number];
  readonly reportData: Buffer;
  readonly measurement: Buffer;
}

/** Differences between a chip's certificate and a valid one. */
export interface ChipOverrides {
  readonly until?: Date;
  readonly product?: string;
  readonly hardwareId?: Buffer;
  /** Firmware levels, by their number in the certificate. */
  readonly levels?: Readonly<Record<number, number>>;
  readonly issuerKey?: KeyObject;
  readonly extraExtensions?: readonly Buffer[];
}

const VALID_FROM = new Date('2024-01-01T00:00:00Z');
const VALID_UNTIL = new Date('2044-01-01T00:00:00Z');
const AMD = '1.3.6.1.4.1.3704.1';

const SAFE_REPORT = {
  version: 3,
  guestPolicy: 0x3_0000n,
  vmpl: 0,
  platform: 0x27n,
  cpuid: [0x19, 0x11, 1],
  tcb: [10, 0, 0, 0, 0, 0, 23, 84],
  firmware: [40, 55, 1],
} as const;

/** Signs reports as AMD's processors do. Its certificates have a root of their own, which only tests trust. */
export class TestProcessor {
  private readonly chip = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
  private readonly hardwareId = Buffer.alloc(64, 0xc1);
  private readonly signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 });
  /** The root in the format of the proxy's pinned roots: certificates as base64 of DER. */
  readonly root: { readonly product: string; readonly ark: string; readonly ask: string };

  constructor(readonly product = 'Genoa') {
    const ark = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const byArk = {
      issuer: { name: `ARK-${product}`, key: ark.privateKey },
      from: VALID_FROM,
      until: VALID_UNTIL,
      isCa: true,
    };
    this.root = {
      product,
      ark: issueCertificate({ ...byArk, subject: `ARK-${product}`, publicKey: ark.publicKey }).toString('base64'),
      ask: issueCertificate({ ...byArk, subject: `SEV-${product}`, publicKey: this.signingKey.publicKey }).toString(
        'base64',
      ),
    };
  }

  /** Returns a signed report. */
  createReport(params: Pick<ReportParams, 'reportData' | 'measurement'> & Partial<ReportParams>): Buffer {
    const reportFields: ReportParams = { ...SAFE_REPORT, ...params };
    const report = Buffer.alloc(1184);
    report.writeUInt32LE(reportFields.version, 0);
    report.writeBigUInt64LE(reportFields.guestPolicy, 0x08);
    report.writeUInt32LE(reportFields.vmpl, 0x30);
    report.writeUInt32LE(1, 0x34);
    report.writeBigUInt64LE(reportFields.platform, 0x40);
    for (const [at, tcb] of [
      [0x38, reportFields.tcb],
      [0x180, reportFields.tcb],
      [0x1e0, reportFields.committedTcb ?? reportFields.tcb],
      [0x1f0, reportFields.launchTcb ?? reportFields.tcb],
    ] as const) {
      report.set(tcb, at);
    }
    reportFields.reportData.copy(report, 0x50);
    reportFields.measurement.copy(report, 0x90);
    if (reportFields.version > 2) report.set(reportFields.cpuid, 0x188);
    report.set(this.product === 'Turin' ? this.hardwareId.subarray(0, 8) : this.hardwareId, 0x1a0);
    for (const at of [0x1e8, 0x1ec]) report.set(reportFields.firmware, at);
    return this.signReport(report);
  }

  /** Returns a signed copy of a report, which a test may have changed. */
  signReport(report: Buffer): Buffer {
    const signature = sign('sha384', report.subarray(0, 0x2a0), {
      key: this.chip.privateKey,
      dsaEncoding: 'ieee-p1363',
    });
    const signed = Buffer.from(report);
    signed.set(Buffer.from(signature.subarray(0, 48)).reverse(), 0x2a0);
    signed.set(Buffer.from(signature.subarray(48)).reverse(), 0x2a0 + 72);
    return signed;
  }

  /** Returns the certificate of the chip's key (VCEK) in DER. */
  createCertificate({
    until = VALID_UNTIL,
    issuerKey,
    extraExtensions = [],
    ...overrides
  }: ChipOverrides = {}): Buffer {
    const turin = this.product === 'Turin';
    const levels = turin ? { 9: 1, 1: 3, 2: 2, 3: 5, 8: 97 } : { 1: 10, 2: 0, 3: 23, 8: 84 };
    return issueCertificate({
      subject: 'SEV-VCEK',
      publicKey: this.chip.publicKey,
      issuer: { name: `SEV-${this.product}`, key: issuerKey ?? this.signingKey.privateKey },
      from: VALID_FROM,
      until,
      extensions: [
        createExtension(`${AMD}.2`, ia5(overrides.product ?? this.product)),
        ...Object.entries({ ...levels, 4: 0, 5: 0, 6: 0, 7: 0, ...overrides.levels }).map(([number, level]) =>
          createExtension(`${AMD}.3.${number}`, integer(level)),
        ),
        createExtension(`${AMD}.4`, overrides.hardwareId ?? this.hardwareId.subarray(0, turin ? 8 : 64)),
        ...extraExtensions,
      ],
    });
  }
}
