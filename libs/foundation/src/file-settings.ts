/** Settings of stored files, uploaded files, and files that are fetched from addresses in requests. */
import { z } from 'zod';
import { requiredWith } from './external-service-settings.ts';
import { integer, list, optional, secret, text, url } from './setting-types.ts';

const GIB = 1024 ** 3;

export const FILE_SETTINGS = {
  filesDir: optional(
    text('FILES_DIR', '', 'Directory of files for download, the same for every process; unset: "files" in DATA_DIR'),
  ),
  s3Bucket: requiredWith(
    'S3_ENDPOINT',
    text(
      'S3_BUCKET',
      '',
      'Bucket of an S3-compatible service for files for download; required with S3_ENDPOINT, unless BACKUP_S3_BUCKET is set; unset: FILES_DIR is used',
    ),
    'BACKUP_S3_BUCKET',
  ),
  s3Endpoint: optional(url('S3_ENDPOINT', 'Address of the S3-compatible service; unset: Amazon S3 in S3_REGION')),
  s3Region: text('S3_REGION', 'us-east-1', 'Region of the bucket'),
  s3AccessKeyId: optional(
    secret(
      'S3_ACCESS_KEY_ID',
      /^[!-~]+$/,
      'a key id',
      'Access key that may list the bucket, and get, put and delete its objects; unset: the default credentials of the AWS SDK, such as those of the role of the host',
    ),
  ),
  s3SecretAccessKey: requiredWith(
    'S3_ACCESS_KEY_ID',
    secret('S3_SECRET_ACCESS_KEY', /^[!-~]+$/, 'a secret key', 'Secret of S3_ACCESS_KEY_ID; required with it'),
  ),
  uploadsDir: optional(
    text(
      'UPLOADS_DIR',
      '',
      'Directory of uploaded files until the responses to their requests are sent; unset: "uploads" in DATA_DIR',
    ),
  ),
  uploadsMaxBytes: integer(
    'UPLOADS_MAX_BYTES',
    4 * GIB,
    [64 * 1024 * 1024, 1024 * GIB],
    'Maximum number of bytes of uploaded files that a gateway stores at a time; one payer may use half of it, callers without payment less; beyond these limits uploads get 503',
  ),
  privateSources: list(
    'PRIVATE_SOURCES',
    z.string().refine(isOrigin),
    'addresses that start with http:// or https:// and have no path',
    'Private origins, such as http://10.0.0.7:8080, from which images in requests may be fetched, separated by commas',
  ),
};

/** Accepts exact origins only, because callers choose the addresses to fetch. */
function isOrigin(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, href, origin } = new URL(value);
  return /^https?:$/.test(protocol) && href === `${origin}/`;
}
