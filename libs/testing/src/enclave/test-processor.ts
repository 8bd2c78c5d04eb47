import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { ia5, integer } from './der.ts';
import { extension, issue } from './issue.ts';

/** What a report of a test's processor says, by default what a safe one of AMD's Genoa line does. */
export interface ReportWish {
  readonly version: number;
  readonly guestPolicy: bigint;
  readonly vmpl: number;
  readonly platform: bigint;
  readonly cpuid: readonly [family: number, model: number, stepping: number];
  /** The eight bytes as they stand in the report. */
  readonly tcb: readonly number[];
  readonly committedTcb?: readonly number[];
  readonly launchTcb?: readonly number[];
  readonly firmware: readonly [build: number, minor: number, major: number];
  readonly reportData: Buffer;
  readonly measurement: Buffer;
}

/** Other dates or contents of the chip's certificate than AMD's would have. */
export interface ChipWish {
  readonly until?: Date;
  readonly product?: string;
  readonly hardwareId?: Buffer;
  /** By their number in the certificate. */
  readonly levels?: Readonly<Record<number, number>>;
  readonly issuerKey?: KeyObject;
  readonly extraExtensions?: readonly Buffer[];
}

const FROM = new Date('2024-01-01T00:00:00Z');
const UNTIL = new Date('2044-01-01T00:00:00Z');
const AMD = '1.3.6.1.4.1.3704.1';

const SAFE = {
  version: 3,
  guestPolicy: 0x3_0000n,
  vmpl: 0,
  platform: 0x27n,
  cpuid: [0x19, 0x11, 1],
  tcb: [10, 0, 0, 0, 0, 0, 23, 84],
  firmware: [40, 55, 1],
} as const;

/** A processor that signs reports as AMD's do, with a root of its own, which nothing but a test trusts. */
export class TestProcessor {
  private readonly chip = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
  private readonly hardwareId = Buffer.alloc(64, 0xc1);
  private readonly ask = generateKeyPairSync('rsa', { modulusLength: 2048 });
  /** As the proxy pins AMD's: certificates in DER, base64. */
  readonly root: { readonly product: string; readonly ark: string; readonly ask: string };

  constructor(readonly product = 'Genoa') {
    const ark = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const byArk = { issuer: { name: `ARK-${product}`, key: ark.privateKey }, from: FROM, until: UNTIL, isCa: true };
    this.root = {
      product,
      ark: issue({ ...byArk, subject: `ARK-${product}`, publicKey: ark.publicKey }).toString('base64'),
      ask: issue({ ...byArk, subject: `SEV-${product}`, publicKey: this.ask.publicKey }).toString('base64'),
    };
  }

  /** A signed report. */
  report(wish: Pick<ReportWish, 'reportData' | 'measurement'> & Partial<ReportWish>): Buffer {
    const said: ReportWish = { ...SAFE, ...wish };
    const report = Buffer.alloc(1184);
    report.writeUInt32LE(said.version, 0);
    report.writeBigUInt64LE(said.guestPolicy, 0x08);
    report.writeUInt32LE(said.vmpl, 0x30);
    report.writeUInt32LE(1, 0x34);
    report.writeBigUInt64LE(said.platform, 0x40);
    for (const [at, tcb] of [
      [0x38, said.tcb],
      [0x180, said.tcb],
      [0x1e0, said.committedTcb ?? said.tcb],
      [0x1f0, said.launchTcb ?? said.tcb],
    ] as const) {
      report.set(tcb, at);
    }
    said.reportData.copy(report, 0x50);
    said.measurement.copy(report, 0x90);
    if (said.version > 2) report.set(said.cpuid, 0x188);
    report.set(this.product === 'Turin' ? this.hardwareId.subarray(0, 8) : this.hardwareId, 0x1a0);
    for (const at of [0x1e8, 0x1ec]) report.set(said.firmware, at);
    return this.signed(report);
  }

  /** The report signed anew, after a test has changed it. */
  signed(report: Buffer): Buffer {
    const signature = sign('sha384', report.subarray(0, 0x2a0), {
      key: this.chip.privateKey,
      dsaEncoding: 'ieee-p1363',
    });
    const signed = Buffer.from(report);
    signed.set(Buffer.from(signature.subarray(0, 48)).reverse(), 0x2a0);
    signed.set(Buffer.from(signature.subarray(48)).reverse(), 0x2a0 + 72);
    return signed;
  }

  /** The certificate of the chip's key (VCEK), DER. */
  certificate({ until = UNTIL, issuerKey, extraExtensions: more = [], ...wish }: ChipWish = {}): Buffer {
    const turin = this.product === 'Turin';
    const levels = turin ? { 9: 1, 1: 3, 2: 2, 3: 5, 8: 97 } : { 1: 10, 2: 0, 3: 23, 8: 84 };
    return issue({
      subject: 'SEV-VCEK',
      publicKey: this.chip.publicKey,
      issuer: { name: `SEV-${this.product}`, key: issuerKey ?? this.ask.privateKey },
      from: FROM,
      until,
      extensions: [
        extension(`${AMD}.2`, ia5(wish.product ?? this.product)),
        ...Object.entries({ ...levels, 4: 0, 5: 0, 6: 0, 7: 0, ...wish.levels }).map(([number, level]) =>
          extension(`${AMD}.3.${number}`, integer(level)),
        ),
        extension(`${AMD}.4`, wish.hardwareId ?? this.hardwareId.subarray(0, turin ? 8 : 64)),
        ...more,
      ],
    });
  }
}
