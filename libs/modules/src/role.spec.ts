import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { createLog, readSettings } from '#foundation';
import { openContext } from './container.ts';
import { openRole, ProcessRole, reportUnknownSettings } from './role.ts';

const settings = readSettings({});
const log = createLog('fatal');

/** Opens a role with these modules, which record their lifecycle in `happened`. */
const open = (...modules: readonly (new () => object)[]) =>
  openRole('test', settings, log, async (role) => {
    await openContext(role, modules);
    return {};
  });

let happened: string[] = [];

function resource(name: string) {
  return { close: () => void happened.push(`${name} closed`) };
}

class Store {}
class Feed {}

@Module({
  providers: [
    { provide: Store, inject: [ProcessRole], useFactory: (role: ProcessRole) => role.closeOnExit(resource('store')) },
    {
      provide: Feed,
      inject: [ProcessRole, Store],
      useFactory: (role: ProcessRole) => role.closeOnExit(resource('feed')),
    },
  ],
  exports: [Store, Feed],
})
class Stores {}

@Module({ imports: [Stores] })
class Worker implements OnApplicationBootstrap, BeforeApplicationShutdown {
  onApplicationBootstrap(): void {
    happened.push('started');
  }

  beforeApplicationShutdown(): void {
    happened.push('drained');
  }
}

test('a role drains its work before its resources are closed in the reverse order of their opening', async () => {
  happened = [];
  const role = await open(Worker);
  await role.close();
  expect(happened).toEqual(['started', 'drained', 'feed closed', 'store closed']);
});

test('a role starts modules in their given order, and drains them in the reverse order', async () => {
  happened = [];
  const worker = (name: string) => {
    @Module({ imports: [Stores] })
    class Named implements OnApplicationBootstrap, BeforeApplicationShutdown {
      onApplicationBootstrap(): void {
        happened.push(`${name} started`);
      }

      beforeApplicationShutdown(): void {
        happened.push(`${name} drained`);
      }
    }
    return Named;
  };
  await (await open(worker('projector'), worker('sagas'), worker('gateway'))).close();
  expect(happened.slice(0, 6)).toEqual([
    'projector started',
    'sagas started',
    'gateway started',
    'gateway drained',
    'sagas drained',
    'projector drained',
  ]);
});

test('a failed start rejects with its error, and closes all resources, even one that opens later', async () => {
  happened = [];
  const failed = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();

  @Module({
    imports: [Stores],
    providers: [
      { provide: 'broken', inject: [Feed], useFactory: () => Promise.reject(new Error('cannot start')) },
      {
        provide: 'slow',
        inject: [ProcessRole],
        useFactory: async (role: ProcessRole) => {
          await failed.promise;
          await role.closeOnExit(resource('late')).finally(late.resolve);
        },
      },
    ],
  })
  class Broken {}

  await expect(open(Broken)).rejects.toThrow(new Error('cannot start'));
  failed.resolve();
  await late.promise.catch(() => {});
  expect(happened).toEqual(['feed closed', 'store closed', 'late closed']);
});

test('a role warns of variables that resemble settings, also those of providers in the catalogue', () => {
  const warnings: string[] = [];
  const env = { OPENAI_APIKEY: 'sk-1', SHUTDOWN_TIMEOUT: '1000', OPENAI_API_KEY: 'sk-2', PATH: '/bin' };
  reportUnknownSettings(env, settings, { warn: (_: object, sentence: string) => void warnings.push(sentence) });
  expect(warnings).toEqual([
    'OPENAI_APIKEY is not a setting and has no effect; did you mean OPENAI_API_KEY?',
    'SHUTDOWN_TIMEOUT is not a setting and has no effect; did you mean SHUTDOWN_TIMEOUT_MS?',
  ]);
});
