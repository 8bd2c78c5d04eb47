/** Settings of scheduled backups. Only the backup role and `npm run backup` use them. */
import { duration, integer, optional, secret, text } from './setting-types.ts';

const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];

export const BACKUP_SETTINGS = {
  backupEveryMs: duration(
    'BACKUP_EVERY',
    '24h',
    [MINUTE_MS, 30 * DAY_MS],
    'How often the backup role makes a backup, such as 30m, 6h or 1d',
  ),
  backupRetentionDays: integer(
    'BACKUP_RETENTION_DAYS',
    30,
    [1, 36_500],
    'Days after which a scheduled backup may be deleted; the last one is never deleted',
  ),
  backupDir: optional(text('BACKUP_DIR', '', 'Directory of scheduled backups, on another disk than the databases')),
  backupS3Bucket: optional(
    text(
      'BACKUP_S3_BUCKET',
      '',
      'Bucket of scheduled backups, instead of BACKUP_DIR, in the service of S3_ENDPOINT with the access key S3_ACCESS_KEY_ID; not that of S3_BUCKET',
    ),
  ),
  backupPublicKey: optional(
    secret(
      'BACKUP_PUBLIC_KEY',
      /^age1[0-9a-z]+$/,
      'a public key of age, which starts with age1',
      'Public key of age that encrypts scheduled backups; "npm run backup -- keys" generates one with its secret key',
    ),
  ),
  backupSecretKey: optional(
    secret(
      'BACKUP_SECRET_KEY',
      /^AGE-SECRET-KEY-[0-9A-Z-]+$/,
      'a secret key of age, which starts with AGE-SECRET-KEY-',
      'Secret key of BACKUP_PUBLIC_KEY, only for "npm run backup -- fetch" and "rehearse"; should be unset for all roles',
    ),
  ),
};
