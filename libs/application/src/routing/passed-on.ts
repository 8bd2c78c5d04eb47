/** What is passed on to an upstream: unknown suffixes, and the `provider` object for one that is itself a router, under the model's own rules. */
import { type AnyModel, type Endpoint, slugOf } from '#catalogue';
import { UpstreamFailure } from '../failures.ts';
import type { NamedModel, Sort } from './preferences.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * A request whose `provider` says what holds for it: a router behind us must not undo what is enforced here, and
 * sorts its providers by the suffix of the name. Most requests stay as they are.
 */
export function withEnforcedRouting<B extends { readonly [field: string]: unknown }>(
  body: B,
  { model: { routing }, sort }: NamedModel,
  searchesWeb: boolean,
): B {
  if (routing === undefined && sort === undefined) return body;
  const given = body.provider ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) return body; // routing refuses it
  const { webSearchDropsZdr = false, ...rules } = routing ?? {};
  const enforced: Record<string, unknown> = { ...given };
  if (Object.values(rules).some((names) => names.length > 0)) {
    for (const field of ['order', 'only', 'ignore']) delete enforced[field];
    Object.assign(enforced, rules);
  }
  if (webSearchDropsZdr && searchesWeb) delete enforced.zdr;
  if (sort !== undefined) enforced.sort = sort satisfies Sort;
  return { ...body, provider: enforced };
}

/** A router does not know itself as one of its providers. Undefined when nothing is left to be said. */
export function providerFor({ routes, slug }: Pick<Endpoint, 'routes' | 'slug'>, provider: unknown): unknown {
  if (!routes || typeof provider !== 'object' || provider === null) return provider;
  const said: Record<string, unknown> = { ...provider };
  const meant = namesIn(provider as Fields, 'only').includes(slug);
  for (const field of ['order', 'only', 'ignore']) {
    const names = namesIn(said, field);
    const others = names.filter((name) => name !== slug);
    // When the router as a whole is allowed, any of its providers is.
    if (names.length > 0 && (others.length === 0 || (field === 'only' && meant))) delete said[field];
    else if (others.length < names.length) said[field] = others;
  }
  return Object.keys(said).length > 0 ? said : undefined;
}

function namesIn(fields: Fields, field: string): readonly string[] {
  const names = fields[field];
  return Array.isArray(names) ? names.map(String).map(slugOf) : [];
}

/**
 * What an upstream answers that was asked for a model with suffixes that mean nothing here, if there are any: when it
 * knows no such model either, the fault is in the name.
 * @throws UpstreamFailure
 */
export function answerOfVariant<A>({ model, passedOn }: NamedModel<AnyModel>, answer: Promise<A>): Promise<A> {
  if (passedOn === '') return answer;
  return answer.catch((error) => {
    if (!(error instanceof UpstreamFailure) || error.status !== 404) throw error;
    const message = `No endpoints found for ${model.id}${passedOn}`;
    throw new UpstreamFailure('invalid_request', message, { status: 404, cause: error });
  });
}
