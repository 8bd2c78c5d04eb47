import { registerHooks } from 'node:module';
import type { Mutant } from './mutants.ts';

/**
 * Returns the source with the mutant. Spaces and line breaks may differ, as they do between TypeScript and JavaScript.
 * @throws Error if the original text does not occur exactly once
 */
export function mutate(source: string, { name, file, original, replacement }: Mutant): string {
  const parts = original.trim().split(/\s+/);
  const pattern = new RegExp(parts.map((part) => part.replaceAll(/[$()*+./?[\\\]^{|}]/g, '\\$&')).join('\\s+'), 'g');
  if (source.match(pattern)?.length !== 1) throw new Error(`${name}: ${file} does not have its original text once`);
  return source.replace(pattern, () => replacement);
}

/** Plants a mutant in modules that this thread loads from now on. */
export function plantMutant(mutant: Mutant): void {
  const path = `/${mutant.file.replace(/\.ts$/, '')}.`;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      return url.includes(path) ? { ...loaded, source: mutate(String(loaded.source), mutant) } : loaded;
    },
  });
}
