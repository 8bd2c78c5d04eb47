import type { Abstract, FactoryProvider, InjectionToken } from '@nestjs/common';

/** The classes to inject, by the name of each dependency. */
type DependencyClasses = Readonly<Record<string, Abstract<unknown>>>;
type Dependencies<Classes extends DependencyClasses> = {
  readonly [Name in keyof Classes]: Classes[Name]['prototype'];
};

/**
 * Returns a Nest provider whose factory gets its dependencies as one object. For factories with more dependencies than
 * the six that a parameter list may have: Nest's own `inject` passes dependencies by position only.
 */
export function injectByName<Classes extends DependencyClasses, T>(
  provide: InjectionToken<T>,
  classes: Classes,
  create: (dependencies: Dependencies<Classes>) => T | Promise<T>,
): FactoryProvider<T> {
  const names = Object.keys(classes);
  return {
    provide,
    inject: Object.values(classes),
    useFactory: (...instances: readonly unknown[]) =>
      create(Object.fromEntries(names.map((name, i) => [name, instances[i]])) as Dependencies<Classes>),
  };
}
