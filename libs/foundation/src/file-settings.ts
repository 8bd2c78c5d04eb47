/** Settings of files: those that are kept, those that requests bring, and those that are fetched. */
import { requiredWith } from './external-service-settings.ts';
import { integer, list, optional, secret, text, url } from './setting-types.ts';

const GIB = 1024 ** 3;

export const FILE_SETTINGS = {
  filesDir: optional(
    text(
      'FILES_DIR',
      '',
      'Where files that are handed out are kept, the same for every process; unset: files in DATA_DIR',
    ),
  ),
  s3Bucket: requiredWith(
    'S3_ENDPOINT',
    text('S3_BUCKET', '', 'Bucket of a service that speaks S3, where they are kept instead; unset: a directory'),
  ),
  s3Endpoint: optional(
    url('S3_ENDPOINT', ['http:', 'https:'], 'Address of that service; unset: Amazon’s in S3_REGION'),
  ),
  s3Region: text('S3_REGION', 'us-east-1', 'Its region'),
  s3AccessKeyId: optional(
    secret(
      'S3_ACCESS_KEY_ID',
      /^[!-~]+$/,
      'a key id',
      'Key that may list the bucket and get, put and delete in it; unset: what the machine has by its role',
    ),
  ),
  s3SecretAccessKey: requiredWith(
    'S3_ACCESS_KEY_ID',
    secret('S3_SECRET_ACCESS_KEY', /^[!-~]+$/, 'a secret key', 'The secret of that key'),
  ),
  uploadsDir: optional(
    text('UPLOADS_DIR', '', 'Where files of requests lie until these are answered; unset: uploads in DATA_DIR'),
  ),
  uploadsMaxBytes: integer(
    'UPLOADS_MAX_BYTES',
    4 * GIB,
    [64 * 1024 * 1024, 1024 * GIB],
    'Bytes of such files that each gateway keeps at a time, of one account half of it; with more to come, requests are refused',
  ),
  privateSources: list(
    'PRIVATE_SOURCES',
    isOrigin,
    'addresses that start with http:// or https:// and have no path',
    'Origins such as http://10.0.0.7:8080 from which the pictures that requests name may come though they are private, separated by commas',
  ),
};

/** Exact origins. None by default: nothing of ours is fetched for strangers. */
function isOrigin(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, href, origin } = new URL(value);
  return /^https?:$/.test(protocol) && href === `${origin}/`;
}
