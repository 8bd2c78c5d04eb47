import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { ReadyFields } from '#foundation';
import { HealthListener } from './health-listener.ts';
import { NestLog } from './nest-log.ts';
import { Readiness } from './readiness.ts';
import { ProcessRole } from './role.ts';

class RoleModule {}

/** Root module of a container. The imported modules start in the given order, and drain in the reverse order. */
@Module({})
class RootModule {}

export function createRootModule(role: ProcessRole, modules: readonly Type[]): DynamicModule {
  const roleModule = {
    module: RoleModule,
    global: true,
    providers: [{ provide: ProcessRole, useValue: role }],
    exports: [ProcessRole],
  };
  return { module: RootModule, imports: [roleModule, ...modules] };
}

/**
 * Starts the modules of a process without an HTTP API. Also serves the health routes if `HEALTH_PORT` is set.
 * @returns the address of the health routes, if any
 */
export async function openContext(role: ProcessRole, modules: readonly Type[]): Promise<ReadyFields> {
  const root = createRootModule(role, modules);
  const context = await role.closeOnExit(
    await NestFactory.createApplicationContext(root, { logger: new NestLog(role.log), abortOnError: false }),
  );
  const { settings } = role;
  if (settings.healthPort === undefined) return {};
  const { url } = await role.closeOnExit(
    await HealthListener.open(context.get(Readiness), settings.healthPort, settings),
  );
  return { health: url };
}
