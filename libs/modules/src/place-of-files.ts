/** Access to directories and buckets when a process starts. */
import { FileStoreUnavailableError } from '#application';
import { isTransient, NotReadyError, type Settings, StartError } from '#foundation';

/**
 * Returns the error of a start for that of a directory or bucket: a NotReadyError if it may be usable later. Other
 * errors than FileStoreUnavailableError are returned as they are.
 * @param where the start of a sentence, which names the directory or bucket
 */
export function toStartError(error: unknown, where: string): unknown {
  if (!(error instanceof FileStoreUnavailableError)) return error;
  const { name, message } = error.cause as Error;
  const sentence = `${where} cannot be used: ${message || name}`;
  return isUnavailable(error.cause) ? new NotReadyError(sentence) : new StartError(`${sentence}.`);
}

/** Whether a service did not respond, or responded that it cannot serve now. */
function isUnavailable(reason: unknown): boolean {
  const { name, $metadata: metadata } = reason as { name: string; $metadata?: { httpStatusCode?: number } };
  const { httpStatusCode: status = 0 } = metadata ?? {};
  return isTransient(reason) || name === 'TimeoutError' || status === 429 || status >= 500;
}

/** Returns how to connect to a bucket of the service in the settings, whose credentials may be replaced. */
export function toS3Options(settings: Settings, bucket: string) {
  const { s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey } = settings;
  const isConfigured = s3AccessKeyId !== undefined && s3SecretAccessKey !== undefined;
  const credentials = {
    get accessKeyId() {
      return settings.s3AccessKeyId ?? '';
    },
    get secretAccessKey() {
      return settings.s3SecretAccessKey ?? '';
    },
  };
  return { bucket, endpoint: s3Endpoint, region: s3Region, credentials: isConfigured ? credentials : undefined };
}
