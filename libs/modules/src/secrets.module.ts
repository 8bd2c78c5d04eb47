import { Module } from '@nestjs/common';
import pg from 'pg';
import { Secrets, toMasterKeyId } from '#application';
import type { DomainEvent } from '#domain';
import { admitKeys, assertFirst, Foundation, readMasterKeys } from '#foundation';
import { type EventReader, START_POSITION } from '#kernel';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** For roles that read or write secrets; only they need the master key. */
@Module({
  imports: [StoresModule],
  providers: [{ provide: Secrets, inject: [Role, pg.Pool, Foundation], useFactory: openSecrets }],
  exports: [Secrets],
})
export class SecretsModule {}

/** @throws StartError when a key is missing that secrets are under */
async function openSecrets({ settings }: Role, pool: pg.Pool, { store }: Foundation): Promise<Secrets> {
  const firstUsed = () => firstKeyUsed(store);
  const [masterKey, ...others] = await readMasterKeys(settings, () => assertFirst(pool, firstUsed));
  const ring = [masterKey as Buffer, ...others];
  const oldest = await admitKeys(pool, ring.map(toMasterKeyId), firstUsed);
  return new Secrets(masterKey as Buffer, others, oldest);
}

/** The first secret is among the first facts: every account begins with a key. */
async function firstKeyUsed(store: EventReader): Promise<string | undefined> {
  for await (const { events } of store.history(START_POSITION)) {
    for (const { data } of events as readonly DomainEvent[]) if ('secret' in data) return data.secret.key;
  }
  return undefined;
}
