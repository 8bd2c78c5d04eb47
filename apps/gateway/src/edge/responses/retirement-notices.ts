/**
 * Announces the end of a model to clients, and which model replaces it: in response headers, and in lists of models.
 */
import type { FastifyReply } from 'fastify';
import { type CatalogueService, type Hold, type HoldRequest, type Payer, PayerDecorator } from '#application';
import type { Retirement } from '#catalogue';

export class RetirementNotices {
  constructor(private readonly catalogues: Pick<CatalogueService, 'current'>) {}

  /** Returns a payer that adds the headers for the first model that ends, of those for which it holds money. */
  wrapPayer(payer: Payer, reply: FastifyReply): Payer {
    return new NotifyingPayer(payer, (models) => {
      const retirements = models.map((id) => this.catalogues.current.findRetirement({ id }));
      const retirement = retirements.find((one) => one !== undefined);
      if (retirement) reply.headers(toNoticeHeaders(retirement));
    });
  }
}

class NotifyingPayer extends PayerDecorator {
  constructor(
    payer: Payer,
    private readonly addNotice: (models: readonly string[]) => void,
  ) {
    super(payer);
  }

  override hold(request: HoldRequest): Promise<Hold> {
    this.addNotice([request.query, ...(request.fallbacks ?? [])].map(({ model }) => model));
    return this.payer.hold(request);
  }
}

/** `Sunset` is defined in RFC 8594, the relation `successor-version` in RFC 5829. */
function toNoticeHeaders({ day, successor }: Retirement): Readonly<Record<string, string>> {
  const sunset = new Date(day).toUTCString();
  return successor === undefined
    ? { sunset }
    : { sunset, link: `</v1/models/${encodeURI(successor)}>; rel="successor-version"` };
}

/** `expiration_date` is OpenRouter's field: https://openrouter.ai/docs/api-reference/list-available-models */
export function toRetirementJson(retirement: Retirement | undefined) {
  return { expiration_date: retirement?.day ?? null, successor: retirement?.successor ?? null };
}
