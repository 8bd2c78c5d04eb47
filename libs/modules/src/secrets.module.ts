import { isDeepStrictEqual } from 'node:util';
import { Module } from '@nestjs/common';
import pg from 'pg';
import { Secrets, toMasterKeyId } from '#application';
import type { DomainEvent } from '#domain';
import { assertNoSecretsYet, Foundation, readOrCreateMasterKeys, registerMasterKeys, type Settings } from '#foundation';
import { type EventReader, START_POSITION } from '#kernel';
import { ProcessRole } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** For roles that read or write secrets; only they need the master key. */
@Module({
  imports: [StoresModule],
  providers: [{ provide: Secrets, inject: [ProcessRole, pg.Pool, Foundation], useFactory: openSecrets }],
  exports: [Secrets],
})
export class SecretsModule {}

/** @throws StartError if the file of the master key is unusable, or a key that protects existing secrets is missing */
async function openSecrets(role: ProcessRole, pool: pg.Pool, foundation: Foundation): Promise<Secrets> {
  const findKeyId = () => findFirstUsedKeyId(foundation.store);
  let keyRing: readonly Buffer[] = [];
  const register = async (keys: readonly Buffer[]) => {
    const [masterKey, ...otherKeys] = keys;
    const oldest = await registerMasterKeys(pool, keys.map(toMasterKeyId), findKeyId);
    keyRing = keys;
    return new Secrets(foundation.runtime, masterKey as Buffer, otherKeys, oldest);
  };
  const open = async () =>
    register(await readOrCreateMasterKeys(role.settings, () => assertNoSecretsYet(pool, findKeyId)));
  const secrets = await foundation.startDeadline.waitFor('the master keys in the database', open);
  const replaceKeys = async ({ masterKeys }: Settings) => {
    const keys = masterKeys?.map((key) => Buffer.from(key, 'hex'));
    if (keys !== undefined && !isDeepStrictEqual(keys, keyRing)) secrets.replaceKeys(await register(keys));
  };
  role.onSecretChange(replaceKeys);
  await replaceKeys(role.settings); // they may have changed during the start
  return secrets;
}

/** The first secret is in one of the first events, because every account starts with an API key. */
async function findFirstUsedKeyId(store: EventReader): Promise<string | undefined> {
  for await (const { events } of store.readAll(START_POSITION)) {
    for (const { data } of events as readonly DomainEvent[]) if ('secret' in data) return data.secret.key;
  }
  return undefined;
}
