import { Module } from '@nestjs/common';
import pg from 'pg';
import { Secrets, toMasterKeyId } from '#application';
import type { DomainEvent } from '#domain';
import { assertNoSecretsYet, Foundation, readOrCreateMasterKeys, registerMasterKeys } from '#foundation';
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
async function openSecrets({ settings }: ProcessRole, pool: pg.Pool, foundation: Foundation): Promise<Secrets> {
  const findKeyId = () => findFirstUsedKeyId(foundation.store);
  const open = async () => {
    const [masterKey, ...olderKeys] = await readOrCreateMasterKeys(settings, () => assertNoSecretsYet(pool, findKeyId));
    const keyRing = [masterKey as Buffer, ...olderKeys];
    const oldest = await registerMasterKeys(pool, keyRing.map(toMasterKeyId), findKeyId);
    return new Secrets(masterKey as Buffer, olderKeys, oldest);
  };
  return foundation.startDeadline.waitFor('the master keys in the database', open);
}

/** The first secret is in one of the first events, because every account starts with an API key. */
async function findFirstUsedKeyId(store: EventReader): Promise<string | undefined> {
  for await (const { events } of store.readAll(START_POSITION)) {
    for (const { data } of events as readonly DomainEvent[]) if ('secret' in data) return data.secret.key;
  }
  return undefined;
}
