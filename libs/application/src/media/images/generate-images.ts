/** Images from words and from other images: quote → hold → call → fetch → keep → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { PicoUsd } from '#kernel';
import { BillingEngine, type ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { SourceImage } from '../../providers/media-calls.ts';
import { RejectedPrompts } from '../rejected-prompts.ts';
import { ImageFiles, type StoredImage, type UploadedImages } from './image-files.ts';
import { ImageMaker } from './image-generator.ts';
import { hasImage, ImageQuoter } from './image-quoter.ts';
import type { ImageBody } from './image-request.ts';

export interface GenerateImagesParams {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly audience: ClientConnection;
  /** Pictures come as they are, or are kept for a while and come as addresses. */
  readonly as: 'bytes' | 'addresses';
}

export type DeliveredImage = SourceImage | StoredImage;

export interface GenerateImagesResult {
  /** Our name of the model. */
  readonly model: string;
  readonly images: readonly DeliveredImage[];
  readonly charged: PicoUsd;
}

export class GenerateImages extends Command<GenerateImagesResult> {
  /** @param uploaded of requests that are edits */
  constructor(
    readonly payer: Payer,
    readonly request: GenerateImagesParams,
    readonly body: ImageBody,
    readonly uploaded?: UploadedImages | undefined,
  ) {
    super();
  }
}

@CommandHandler(GenerateImages)
export class GenerateImagesHandler implements ICommandHandler<GenerateImages> {
  constructor(
    private readonly quotes: ImageQuoter,
    private readonly paying: BillingEngine,
    private readonly images: { readonly maker: ImageMaker; readonly files: ImageFiles },
    private readonly refused: RejectedPrompts,
  ) {}

  async execute({ payer, request, body, uploaded }: GenerateImages): Promise<GenerateImagesResult> {
    const { requestId, source, audience, as } = request;
    const { maker, files } = this.images;
    if (as === 'addresses') files.assertKept();
    const quote = await this.quotes.quote(body, { payer, requestId, source, isEdit: uploaded !== undefined });
    const { sale, usesImage } = quote;
    const brought = usesImage ? (uploaded ?? (hasImage(body) ? String(body.image_url) : undefined)) : undefined;
    const order = { ...quote, pictures: await files.pictures(brought) };
    const make = async (purchase: Purchase): Promise<readonly DeliveredImage[]> => {
      const made = await maker.make(order, purchase);
      return as === 'bytes' ? made : files.kept(made);
    };
    const sell = () => this.paying.whole(payer, sale, make, audience);
    const { answer: images, receipt } = await this.refused.bounded(payer.id, sell);
    return { model: sale.model.id, images, charged: receipt.charged };
  }
}
