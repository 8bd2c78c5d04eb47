/** Lists what ends soon or has ended, for the operator. */
import type { Catalogue } from './catalogue.ts';
import { hasRetired, isRetirementNear, type Retirement } from './retirement.ts';

/** The end of a model, or of one of its endpoints that ends before the model. */
export interface CatalogueEnd extends Retirement {
  readonly model: string;
  /** Slug of the endpoint; undefined if the model ends. */
  readonly endpoint?: string;
}

/**
 * Returns the ends that have come, or come within 30 days of a UTC day. Models without endpoints are left out, because
 * no provider serves them here.
 */
export function listEnds(source: Catalogue, day: string): readonly CatalogueEnd[] {
  const current = source.onDay(day);
  return [...source.models, ...source.retiredModels].flatMap(({ id: model, retires: modelDay, endpoints }) => {
    if (endpoints.length === 0) return [];
    const retirement = current.findRetirement({ id: model });
    const modelEnds = retirement ? [{ model, ...retirement }] : [];
    const endpointEnds = endpoints.flatMap(({ slug, retires }) =>
      retires !== undefined && isRetirementNear(retires, day) && !hasRetired(modelDay, retires)
        ? [{ model, endpoint: slug, day: retires, isOver: hasRetired(retires, day) }]
        : [],
    );
    return [...modelEnds, ...(retirement?.isOver ? [] : endpointEnds)];
  });
}
