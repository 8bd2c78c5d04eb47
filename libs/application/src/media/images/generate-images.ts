/** Images from prompts and from other images: quote → hold → call → fetch → store → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { MediaModel } from '#catalogue';
import type { PicoUsd } from '#kernel';
import type { BillingEngine, ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import type { SourceImage } from '../../providers/media-calls.ts';
import type { RejectedPrompts } from '../rejected-prompts.ts';
import { MAX_SAVED_BYTES } from '../saved-images.ts';
import type { ImageFiles, StoredImage, UploadedImages } from './image-files.ts';
import type { ImageBatch, ImageGenerator } from './image-generator.ts';
import { hasImage, type ImageQuoter } from './image-quoter.ts';
import type { ImageBody } from './image-request.ts';

export interface GenerateImagesParams {
  readonly requestId: string;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
  readonly connection: ClientConnection;
  /** What the caller requested; undefined for the default of the model. */
  readonly delivery: Exclude<ImageDelivery, 'both'> | undefined;
}

/** Up to this size of all images, a response with their base64 text is saved as it is. */
const MAX_INLINE_BYTES = MAX_SAVED_BYTES / 2;

/** Whether a response has the images themselves, URLs of images that are stored for a limited time, or both. */
type ImageDelivery = 'bytes' | 'addresses' | 'both';

export interface DeliveredImage extends Partial<StoredImage> {
  readonly mediaType: string;
  /** Undefined if the response has only the URL. */
  readonly bytes?: Uint8Array;
}

export interface GenerateImagesResult extends Omit<ImageBatch, 'images'> {
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

export interface GenerateImagesDependencies {
  readonly quoter: ImageQuoter;
  readonly billing: BillingEngine;
  readonly generator: ImageGenerator;
  readonly files: ImageFiles;
  readonly rejectedPromptLimit: RejectedPrompts;
}

@CommandHandler(GenerateImages)
export class GenerateImagesHandler implements ICommandHandler<GenerateImages> {
  constructor(private readonly dependencies: GenerateImagesDependencies) {}

  async execute({ payer, request, body, uploaded }: GenerateImages): Promise<GenerateImagesResult> {
    const { requestId, source, connection } = request;
    const { quoter, billing, generator, files, rejectedPromptLimit } = this.dependencies;
    const isEdit = uploaded !== undefined;
    const quote = await quoter.quote(body, { payer, requestId, source, isEdit });
    const { order, usesImage, resolved } = quote;
    const delivery = request.delivery ?? getDefaultDelivery(resolved.model, isEdit);
    if (delivery !== 'bytes') files.assertStoreAvailable();
    const imageInput = usesImage ? (uploaded ?? (hasImage(body) ? String(body.image_url) : undefined)) : undefined;
    const imageOrder = { ...quote, inputs: await files.prepareInputs(imageInput) };
    const generate = async (purchase: Purchase) => {
      const batch = await generator.generate(imageOrder, purchase);
      return { ...batch, images: await this.deliver(batch, delivery, connection.storesResponse) };
    };
    const sell = () => billing.sell(payer, order, generate, connection);
    const { result, receipt } = await rejectedPromptLimit.runWithinLimit(payer.id, sell);
    return { ...result, model: order.model.id, charged: receipt.charged };
  }

  private async deliver(
    { images }: ImageBatch,
    delivery: ImageDelivery,
    storesResponse: boolean,
  ): Promise<readonly DeliveredImage[]> {
    const { files } = this.dependencies;
    if (delivery === 'bytes') {
      if (!storesResponse || sumBytes(images) <= MAX_INLINE_BYTES) return images;
      // A response that cannot be replayed is still delivered.
      const stored = await files.storeImages(images).catch(() => []);
      return images.map((image, n) => ({ ...image, ...(stored[n] ? { file: stored[n].file } : {}) }));
    }
    const stored = await files.storeImages(images);
    return delivery === 'both' ? images.map((image, n) => ({ ...image, ...stored[n] })) : stored;
  }
}

function sumBytes(images: readonly SourceImage[]): number {
  return images.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

/**
 * OpenAI's own image models know no `response_format` and always return base64, so their clients read only that.
 * https://developers.openai.com/api/reference/resources/images/methods/generate
 */
function getDefaultDelivery({ id }: MediaModel, isEdit: boolean): ImageDelivery {
  if (isEdit) return 'bytes';
  return id.startsWith('openai/') ? 'both' : 'addresses';
}
