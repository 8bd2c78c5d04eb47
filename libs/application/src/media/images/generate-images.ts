/** Images from prompts and from other images: quote → hold → call → fetch → store → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { PicoUsd } from '#kernel';
import { BillingEngine, type ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { SourceImage } from '../../providers/media-calls.ts';
import { RejectedPrompts } from '../rejected-prompts.ts';
import { ImageFiles, type StoredImage, type UploadedImages } from './image-files.ts';
import { ImageGenerator } from './image-generator.ts';
import { hasImage, ImageQuoter } from './image-quoter.ts';
import type { ImageBody } from './image-request.ts';

export interface GenerateImagesParams {
  readonly requestId: string;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
  readonly connection: ClientConnection;
  /** Whether the response has the images themselves, or URLs of images that are stored for a limited time. */
  readonly delivery: 'bytes' | 'addresses';
}

export type DeliveredImage = SourceImage | StoredImage;

export interface GenerateImagesResult {
  /** Id of the model in the catalogue. */
  readonly model: string;
  readonly images: readonly DeliveredImage[];
  readonly charged: PicoUsd;
}

export class GenerateImages extends Command<GenerateImagesResult> {
  /** @param uploaded the images of an edit */
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
    private readonly quoter: ImageQuoter,
    private readonly billing: BillingEngine,
    private readonly images: { readonly generator: ImageGenerator; readonly files: ImageFiles },
    private readonly rejectedPromptLimit: RejectedPrompts,
  ) {}

  async execute({ payer, request, body, uploaded }: GenerateImages): Promise<GenerateImagesResult> {
    const { requestId, source, connection, delivery } = request;
    const { generator, files } = this.images;
    if (delivery === 'addresses') files.assertStoreAvailable();
    const quote = await this.quoter.quote(body, { payer, requestId, source, isEdit: uploaded !== undefined });
    const { order, usesImage } = quote;
    const imageInput = usesImage ? (uploaded ?? (hasImage(body) ? String(body.image_url) : undefined)) : undefined;
    const imageOrder = { ...quote, inputs: await files.prepareInputs(imageInput) };
    const generate = async (purchase: Purchase): Promise<readonly DeliveredImage[]> => {
      const generated = await generator.generate(imageOrder, purchase);
      return delivery === 'bytes' ? generated : files.storeImages(generated);
    };
    const sell = () => this.billing.sell(payer, order, generate, connection);
    const { result: images, receipt } = await this.rejectedPromptLimit.runWithinLimit(payer.id, sell);
    return { model: order.model.id, images, charged: receipt.charged };
  }
}
