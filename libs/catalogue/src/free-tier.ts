/**
 * The free tier: models that the operator offers as a promotion. Their requests are limited in number, and use no paid
 * service except a web search whose engine they name. A price of 0 alone does not make a model one of them: the
 * operator's own models can have it too.
 */
import type { AnyModelFile } from './media-file.ts';
import type { ReportProblem } from './validation.ts';

/** End of the ids of models of the free tier. */
const FREE_SUFFIX = ':free';

/** Whether a model is part of the free tier. */
export function isFreeTier({ id, freeTier }: { readonly id: string; readonly freeTier?: boolean }): boolean {
  return freeTier === true || id.endsWith(FREE_SUFFIX);
}

/** Requires prices of 0 from a model of the free tier. */
export function checkFreeTierPrices(model: AnyModelFile, report: ReportProblem): void {
  if (!isFreeTier(model)) return;
  for (const [i, endpoint] of model.endpoints.entries())
    for (const [field, prices] of Object.entries(listEndpointPrices(endpoint)))
      if (prices.some((usd) => Number(usd) !== 0))
        report('must be 0 for a model of the free tier', 'endpoints', i, field);
}

/** Returns the prices of an endpoint by the field that contains them. */
function listEndpointPrices(endpoint: AnyModelFile['endpoints'][number]): Readonly<Record<string, readonly string[]>> {
  if ('usdPerUnit' in endpoint) {
    const { usd, variants = [] } = endpoint.usdPerUnit;
    return { usdPerUnit: [usd, ...variants.map((variant) => variant.usd)] };
  }
  const { usdPerMillionTokens, tiers = [], usdPerRequest = '0' } = endpoint;
  return {
    usdPerMillionTokens: Object.values(usdPerMillionTokens),
    tiers: tiers.flatMap((tier) => Object.values(tier.usdPerMillionTokens)),
    usdPerRequest: [usdPerRequest],
  };
}
