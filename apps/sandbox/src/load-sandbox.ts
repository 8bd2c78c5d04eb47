import { StartError } from '#foundation';

/** Links to the folder with the sandbox's package.json. Only a development install has it. */
const PACKAGES = 'countinghouse-sandbox-packages/package.json';

/**
 * Loads the sandbox only when it is started, because a production install does not have its packages.
 * @throws StartError if a package is missing
 */
export async function loadSandbox(): Promise<typeof import('./sandbox.ts')> {
  try {
    import.meta.resolve(PACKAGES);
    return await import('./sandbox.ts');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const message =
      'A production install has no sandbox, which would simulate all services: set a real provider, or install with "npm ci".';
    throw new StartError(message, { cause });
  }
}
