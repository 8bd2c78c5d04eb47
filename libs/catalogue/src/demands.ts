/** What the models and fees of a catalogue want of the vendors that they are had from. */
import type { Catalogue } from './catalogue.ts';
import { isMedia } from './data-files.ts';

export type Capability = 'chat' | 'responses' | 'embeddings' | 'search';

export interface Demand {
  /** The slug of the vendor. */
  readonly upstream: string;
  readonly capability: Capability;
  /** What wants it, such as `model "openai/gpt-5"`. */
  readonly owner: string;
}

/** The service beside the models that a vendor is asked for by itself; searches of a model's own come with its answer. */
const SEARCH = 'web_search';

/** Images, videos and audio are listed, and not yet served. */
export function demandsOf(catalogue: Catalogue): readonly Demand[] {
  const demands: Demand[] = [];
  for (const model of catalogue.models) {
    if (isMedia(model)) continue;
    const owner = `model "${model.id}"`;
    for (const { upstream, speaks } of model.endpoints) {
      if (model.type === 'embedding') demands.push({ upstream, capability: 'embeddings', owner });
      else demands.push(...speaks.map((capability) => ({ upstream, capability, owner })));
    }
  }
  const search = catalogue.service(SEARCH);
  if (search) demands.push({ upstream: search.provider, capability: 'search', owner: `fee "${SEARCH}"` });
  return demands;
}
