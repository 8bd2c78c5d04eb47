/** The secrets of an installation, the services that accept them, and how each is replaced. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { withClient } from '#postgres';
import { createSelfSignedCertificate } from '../../../libs/testing/src/servers/self-signed.ts';
import type { ProofCluster } from '../../cluster.ts';
import { allocatePortNumbers } from '../money/ports.ts';
import { type RootCredentials, startVersityGw } from '../versitygw.ts';
import { CredentialGuard } from './credential-guard.ts';
import { type NewSecrets, SecretFiles } from './secret-files.ts';

const BUCKET = 'files';
const CONTENT_DATABASE = 'content';
const [BEFORE, AFTER] = ['before', 'after'] as const;
/** The password of the second user of the database after its change. */
const RENEWED = 'renewed';
/** Fewer than the three gateways make in this time, because each checks every 2 s that it can connect. */
const MIN_NEW_CONNECTIONS = 7;
/** Requests that have read the previous secret have been sent by then. */
const REVOKED_AFTER_MS = 1_000;
/** Longer than the interval of the requests that need the secret. */
const USED_WITHIN_MS = 5_000;

export interface Rotation {
  readonly what: string;
  /** Replaces the secret while the service is used. @returns what was observed, which holds if `hasPassed` */
  run(replace: ReplaceSecrets): Promise<{ readonly hasPassed: boolean; readonly observation: string }>;
}

interface Login {
  readonly username: string;
  readonly password: string;
}

/** Writes files, and waits until all processes use them. */
export type ReplaceSecrets = (secrets: NewSecrets) => Promise<void>;

export interface Installation {
  readonly settings: Readonly<Record<string, string>>;
  readonly rotations: readonly Rotation[];
}

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const createMasterKey = (name: string) => createHash('sha256').update(name).digest('hex');

/** Starts the services with their first secrets. */
export class RotatedServices {
  readonly files: SecretFiles;
  private readonly settings: Record<string, string> = {};
  private readonly rotations: Rotation[] = [];

  private constructor(
    private readonly directory: string,
    private readonly resources: AsyncDisposableStack,
  ) {
    this.files = new SecretFiles(directory);
  }

  static async open(): Promise<RotatedServices> {
    const resources = new AsyncDisposableStack();
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-secrets-'));
    resources.defer(() => rm(directory, { recursive: true }));
    return new RotatedServices(directory, resources);
  }

  async close(): Promise<void> {
    await this.resources.disposeAsync();
  }

  /** @param databaseUrl the address of the owner of the database */
  async start({ sandbox }: ProofCluster, databaseUrl: string): Promise<Installation> {
    await this.addDatabases(databaseUrl);
    await this.addMasterKey();
    for (const [name, location] of [
      ['OPENAI', '/openai/v1'],
      ['ANTHROPIC', '/anthropic'],
      ['DEEPINFRA', '/deepinfra/v1'],
    ] as const) {
      const header = name === 'ANTHROPIC' ? 'x-api-key' : 'authorization';
      const guard = await this.addGuarded(`${name}_API_KEY`, header, sandbox);
      this.settings[`${name}_BASE_URL`] = guard.url + location;
    }
    await this.addLightningNode(sandbox);
    const btcpay = await this.addGuarded('BTCPAY_API_KEY', 'authorization', sandbox);
    Object.assign(this.settings, { BTCPAY_URL: `${btcpay.url}/btcpay`, BTCPAY_STORE_ID: 'sandbox' });
    await this.addBucket();
    return { settings: this.settings, rotations: this.rotations };
  }

  private async addSecrets(secrets: NewSecrets): Promise<void> {
    Object.assign(this.settings, await this.files.create(secrets));
  }

  /** Two databases, and two users who act as their owner. Only new connections need the secret. */
  private async addDatabases(databaseUrl: string): Promise<void> {
    const { username: owner, pathname } = new URL(databaseUrl);
    const connectionString = Object.assign(new URL(databaseUrl), { username: 'postgres' }).href;
    const query = (sql: string) => withClient({ connectionString, name: 'rotation' }, (admin) => admin.query(sql));
    await query(`create database ${CONTENT_DATABASE} owner ${owner}`);
    for (const user of [BEFORE, AFTER]) {
      await query(`create role ${user} login password '${user}' in role ${owner}`);
      await query(`alter role ${user} set role = ${owner}`);
    }
    const toAddresses = (database: string, logins: readonly Login[]) =>
      logins.map((login) => Object.assign(new URL(databaseUrl), { ...login, pathname: database }).href).join('\n');
    const toSecrets = (...logins: readonly Login[]) => ({
      DATABASE_URL: toAddresses(pathname, logins),
      CONTENT_DATABASE_URL: toAddresses(`/${CONTENT_DATABASE}`, logins),
    });
    const countConnections = async () => {
      const { rows } = await query('select sum(sessions)::int as count from pg_stat_database');
      return rows[0].count as number;
    };
    const exchange = async (replace: ReplaceSecrets, before: Login, after: Login, revokeSql: string) => {
      await replace(toSecrets(before, after));
      await query(revokeSql);
      const countBefore = await countConnections();
      await sleep(USED_WITHIN_MS);
      await replace(toSecrets(after));
      await sleep(USED_WITHIN_MS);
      const count = (await countConnections()) - countBefore;
      return { hasPassed: count > MIN_NEW_CONNECTIONS, observation: `${count} new connections` };
    };
    const [first, second] = [
      { username: BEFORE, password: BEFORE },
      { username: AFTER, password: AFTER },
    ];
    const renewed = { username: AFTER, password: RENEWED };
    await this.addSecrets(toSecrets(first));
    const what = 'DATABASE_URL and CONTENT_DATABASE_URL';
    this.rotations.push(
      {
        what: `${what}, another user`,
        run: (replace) => exchange(replace, first, second, `alter role ${BEFORE} nologin`),
      },
      {
        what: `${what}, another password of the same user`,
        run: (replace) => exchange(replace, second, renewed, `alter role ${AFTER} password '${RENEWED}'`),
      },
    );
  }

  private async addMasterKey(): Promise<void> {
    const [before, after] = [BEFORE, AFTER].map(createMasterKey) as [string, string];
    await this.addSecrets({ MASTER_KEY: before });
    this.rotations.push({
      what: 'MASTER_KEY, in two steps',
      async run(replace) {
        await replace({ MASTER_KEY: `${before},${after}` });
        await replace({ MASTER_KEY: `${after},${before}` });
        return { hasPassed: true, observation: 'all processes use the new one' };
      },
    });
  }

  /** A service of the sandbox that accepts only the credential of the setting. */
  private async addGuarded(setting: string, header: string, target: string) {
    const guard = new CredentialGuard(header);
    const url = await guard.listen();
    this.resources.defer(() => guard.close());
    await this.addSecrets({ [setting]: `${BEFORE}-${setting}` });
    guard.accept(`${BEFORE}-${setting}`, target);
    this.rotations.push({
      what: setting,
      run: (replace) =>
        rotateCredential(
          guard,
          { before: `${BEFORE}-${setting}`, after: `${AFTER}-${setting}` },
          {
            accept: () => guard.accept(`${AFTER}-${setting}`, target),
            replace: () => replace({ [setting]: `${AFTER}-${setting}` }),
          },
        ),
    });
    return { url };
  }

  /** A node with a certificate of its own, which is replaced as well. */
  private async addLightningNode(sandbox: string): Promise<void> {
    const [certificateBefore, certificateAfter] = [
      await createSelfSignedCertificate(),
      await createSelfSignedCertificate(),
    ];
    const guard = new CredentialGuard('grpc-metadata-macaroon', certificateBefore);
    const url = await guard.listen();
    this.resources.defer(() => guard.close());
    this.settings.LND_REST_URL = `${url}/lnd`;
    const [before, after] = [BEFORE, AFTER].map((name) => Buffer.from(name).toString('hex')) as [string, string];
    await this.addSecrets({ LND_MACAROON: before, LND_TLS_CERT: certificateBefore.cert });
    guard.accept(before, sandbox);
    this.rotations.push(
      {
        what: 'LND_MACAROON',
        run: (replace) =>
          rotateCredential(
            guard,
            { before, after },
            {
              accept: () => guard.accept(after, sandbox),
              replace: () => replace({ LND_MACAROON: after }),
            },
          ),
      },
      {
        what: 'LND_TLS_CERT, with two certificates at a time',
        async run(replace) {
          await replace({ LND_TLS_CERT: `${certificateBefore.cert}${certificateAfter.cert}` });
          guard.useCertificate(certificateAfter);
          await replace({ LND_TLS_CERT: certificateAfter.cert });
          const countBefore = guard.countServed(after);
          await sleep(USED_WITHIN_MS);
          const count = guard.countServed(after) - countBefore;
          return { hasPassed: count > 0, observation: `${count} requests with the new one only` };
        },
      },
    );
  }

  /** Two S3 servers with the same files, each of which accepts one key. */
  private async addBucket(): Promise<void> {
    const directory = path.join(this.directory, 's3');
    await mkdir(directory);
    const portNumbers = await allocatePortNumbers(BEFORE, AFTER);
    const guard = new CredentialGuard('authorization');
    const endpoint = await guard.listen();
    this.resources.defer(() => guard.close());
    const toSecret = (name: string) => ({ accessKeyId: `${name}-key`, secretAccessKey: `${name}-secret` });
    const toTarget = (name: typeof BEFORE | typeof AFTER) => `http://127.0.0.1:${portNumbers[name]}`;
    for (const name of [BEFORE, AFTER]) {
      const server = await startVersityGw(directory, BUCKET, portNumbers[name], toSecret(name));
      this.resources.defer(() => server.stop());
    }
    Object.assign(this.settings, { S3_ENDPOINT: endpoint, S3_BUCKET: BUCKET });
    const [before, after] = [toSecret(BEFORE), toSecret(AFTER)];
    const toSecrets = ({ accessKeyId, secretAccessKey }: RootCredentials) => ({
      S3_ACCESS_KEY_ID: accessKeyId,
      S3_SECRET_ACCESS_KEY: secretAccessKey,
    });
    await this.addSecrets(toSecrets(before));
    guard.accept(before.accessKeyId, toTarget(BEFORE));
    this.rotations.push({
      what: 'S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY',
      run: (replace) =>
        rotateCredential(
          guard,
          { before: before.accessKeyId, after: after.accessKeyId },
          {
            accept: () => guard.accept(after.accessKeyId, toTarget(AFTER)),
            replace: () => replace(toSecrets(after)),
          },
        ),
    });
  }
}

/** The service accepts both credentials until all processes use the new one. */
async function rotateCredential(
  guard: CredentialGuard,
  { before, after }: { readonly before: string; readonly after: string },
  { accept, replace }: { readonly accept: () => void; readonly replace: () => Promise<void> },
) {
  accept();
  await replace();
  await sleep(REVOKED_AFTER_MS);
  guard.revoke(before);
  await sleep(USED_WITHIN_MS);
  const [served, rejected] = [guard.countServed(after), guard.rejectedCount];
  return {
    hasPassed: served > 0 && rejected === 0,
    observation: `${served} requests with the new one, ${rejected} rejected`,
  };
}
