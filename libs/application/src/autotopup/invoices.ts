import type { InvoiceIssued } from '#domain';
import { type Cause, formatUsd, type PicoUsd, Rejection } from '#kernel';
import { InvalidRequestError } from '../errors.ts';
import type { Streams } from '../streams.ts';
import { CreateTopup, type CreateTopupHandler } from '../topups/create-topup.ts';

export const AUTO_TOPUP_METHOD = 'btc-lightning';

export interface AutoTopupInvoiceParams {
  readonly accountId: string;
  readonly topupId: string;
  readonly amount: PicoUsd;
}

/** No invoice can be created for the top-up, and a retry would not change that soon. */
export class InvoiceRejectedError extends Error {
  override readonly name = 'InvoiceRejectedError';
}

/** Invoices of automatic top-ups, which are ordinary top-ups with ids that the workflow chooses. */
export class AutoTopupInvoices {
  constructor(
    private readonly topups: Streams['topups'],
    private readonly createTopup: Pick<CreateTopupHandler, 'execute'>,
  ) {}

  /**
   * Returns the invoice of a top-up, and creates it if there is none. Idempotent.
   * @throws InvoiceRejectedError; UpstreamError if there is no exchange rate or no valid invoice
   */
  async getOrCreate(params: AutoTopupInvoiceParams, cause: Cause): Promise<InvoiceIssued['data']> {
    return (await this.find(params.topupId)) ?? this.create(params, cause);
  }

  async find(topupId: string): Promise<InvoiceIssued['data'] | undefined> {
    return (await this.topups.read(topupId)).invoice;
  }

  private async create(
    { accountId, topupId, amount }: AutoTopupInvoiceParams,
    cause: Cause,
  ): Promise<InvoiceIssued['data']> {
    const requested = { amount: formatUsd(amount), currency: 'USD' };
    const command = new CreateTopup(accountId, { method: AUTO_TOPUP_METHOD, requested }, cause, topupId);
    try {
      return (await this.createTopup.execute(command)).invoice;
    } catch (error) {
      const existing = await this.find(topupId); // perhaps created by another process
      if (existing) return existing;
      const isRejection = error instanceof InvalidRequestError || error instanceof Rejection;
      throw isRejection ? new InvoiceRejectedError(error.message) : error;
    }
  }
}
