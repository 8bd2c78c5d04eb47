/** Finds the input image of a request for a video, which clients of OpenAI and OpenRouter name differently. */
import type { VideoBody } from '#application';
import { BadRequestError } from '../../edge/errors/errors.ts';
import { Upload, type UploadedFile } from '../../edge/uploads/upload.ts';
import type { VideoRequest } from './videos.requests.ts';

/** Fields of OpenRouter that change the video, and that no provider gets. */
const UNSUPPORTED_FIELDS = ['input_references', 'previous_job_id'] as const;
/** The field with the image of OpenAI's clients: a file or, in JSON and as separate fields of a form, an object. */
export const REFERENCE_FIELD = 'input_reference';

interface ImageReference {
  readonly field: string;
  readonly url: unknown;
}

/**
 * Returns the request with its image as `image_url`, unless the image was uploaded.
 * @param sent the body as it was received
 * @throws BadRequestError 400 for several images, for an image in another form than a URL or file, and for fields that
 * request something else than a video from a prompt and its first image
 */
export function toVideoBody(
  request: VideoRequest,
  sent: unknown,
): { readonly body: VideoBody; readonly uploaded?: UploadedFile } {
  const unsupported = UNSUPPORTED_FIELDS.find((name) => isSet(request[name]));
  if (unsupported !== undefined) throw new BadRequestError(`${unsupported} is not supported`, unsupported);
  const [uploaded] = sent instanceof Upload ? sent.files : [];
  const references = [
    ...(isSet(request.image_url) ? [{ field: 'image_url', url: request.image_url }] : []),
    ...listReferences(request),
    ...listFrames(request),
  ];
  const [reference] = references;
  if (references.length + (uploaded ? 1 : 0) > 1)
    throw new BadRequestError('Send one image: as image_url, input_reference or frame_images', reference?.field);
  if (!reference) return { body: request, ...(uploaded ? { uploaded } : {}) };
  const { field, url } = reference;
  if (typeof url !== 'string') throw new BadRequestError(`${field} must have the URL of an image`, field);
  return { body: { ...request, image_url: url } };
}

/** https://developers.openai.com/api/reference/resources/videos/methods/create */
function listReferences(request: VideoRequest): readonly ImageReference[] {
  const reference = request.input_reference ?? toReference(request);
  if (!isSet(reference)) return [];
  const { file_id, image_url } = reference as { readonly file_id?: unknown; readonly image_url?: unknown };
  if (isSet(file_id))
    throw new BadRequestError(
      'input_reference: files by id are not supported; send the file or its URL',
      REFERENCE_FIELD,
    );
  return [{ field: REFERENCE_FIELD, url: image_url }];
}

function toReference(request: VideoRequest): object | undefined {
  const [image_url, file_id] = [request[`${REFERENCE_FIELD}[image_url]`], request[`${REFERENCE_FIELD}[file_id]`]];
  return image_url === undefined && file_id === undefined ? undefined : { image_url, file_id };
}

interface FrameImage {
  readonly frame_type?: unknown;
  readonly image_url?: { readonly url?: unknown } | null;
}

/** https://openrouter.ai/docs/api/api-reference/video-generation/create-videos */
function listFrames({ frame_images }: VideoRequest): readonly ImageReference[] {
  if (!isSet(frame_images)) return [];
  if (!Array.isArray(frame_images)) throw new BadRequestError('frame_images must be an array', 'frame_images');
  return frame_images.map((frame: FrameImage | null) => {
    if ((frame?.frame_type ?? 'first_frame') !== 'first_frame')
      throw new BadRequestError('frame_images: only first_frame is supported', 'frame_images');
    return { field: 'frame_images', url: frame?.image_url?.url };
  });
}

/** Whether a field has a value; an empty list or text counts as none. */
function isSet(value: unknown): boolean {
  return (value ?? undefined) !== undefined && (value as { readonly length?: number }).length !== 0;
}
