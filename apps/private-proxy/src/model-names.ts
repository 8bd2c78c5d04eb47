/** Which private model a caller means. */
import type { Enclaves } from './enclaves.ts';
import { MODEL_ID, PREFIX } from './gateway.ts';
import { ProxyError } from './proxy-error.ts';

/** A private model. */
export interface ResolvedPrivateModel {
  /** Without the prefix. */
  readonly id: string;
  /** The most tokens that it answers with, where that is known. */
  readonly maxOutput: number | undefined;
}

const NOT_FOUND = { param: 'model', code: 'model_not_found' } as const;

export class ModelNames {
  /** @param byDefault for requests that name none, or one that is not private; with or without the prefix */
  constructor(
    private readonly enclaves: Enclaves,
    private readonly byDefault: string | undefined,
  ) {}

  /**
   * What a caller means by a name, and what the gateway says of it.
   * @throws ProxyError
   */
  async meant(asked: unknown): Promise<ResolvedPrivateModel> {
    const id = await this.idOf(asked);
    return { id, maxOutput: (await this.enclaves.hint(PREFIX + id))?.maxOutput };
  }

  /**
   * With the prefix it is that one and no other. Without it, it is the private model of that name if there is one, else the
   * one by default, or the only one where none was named.
   * @returns the id without the prefix
   * @throws ProxyError that names those there are
   */
  private async idOf(asked: unknown): Promise<string> {
    if (asked !== undefined && asked !== null && typeof asked !== 'string') {
      throw new ProxyError(400, 'model must be a string', { param: 'model' });
    }
    const named = asked ?? '';
    if (named.startsWith(PREFIX)) return checked(named);
    const ids = (await this.enclaves.models()).map(({ id }) => id);
    if (ids.includes(PREFIX + named)) return named;
    const byDefault = this.byDefault && stripPrivatePrefix(this.byDefault);
    if (byDefault && ids.includes(PREFIX + byDefault)) return byDefault;
    if (this.byDefault)
      throw new ProxyError(404, `${describeInvalidDefault(this.byDefault)}: ${ids.join(', ')}`, NOT_FOUND);
    if (named === '' && ids.length === 1) return stripPrivatePrefix(ids[0] as string);
    const choice = `Choose one of ${ids.join(', ') || 'none, since the gateway has none'}, or set PRIVATE_MODEL for requests like this`;
    throw named === ''
      ? new ProxyError(400, `model is missing. ${choice}`, { param: 'model' })
      : new ProxyError(404, `The model is not private. ${choice}`, NOT_FOUND);
  }
}

/** What is wrong with the setting of a model that the gateway does not have. */
export function describeInvalidDefault(byDefault: string): string {
  return `PRIVATE_MODEL is ${byDefault}, which is none of the private models of the gateway`;
}

export function stripPrivatePrefix(id: string): string {
  return id.startsWith(PREFIX) ? id.slice(PREFIX.length) : id;
}

function checked(id: string): string {
  if (MODEL_ID.test(id) && id.length > PREFIX.length) return stripPrivatePrefix(id);
  throw new ProxyError(404, 'There is no such private model', NOT_FOUND);
}
