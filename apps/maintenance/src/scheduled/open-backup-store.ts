import type { OperatorProblems } from '#application';
import { S3Bucket } from '#connectors';
import { type Settings, StartError } from '#foundation';
import { toS3Options, toStartError } from '#modules';
import type { BackupStore } from './backup-store.ts';
import { BucketStore } from './bucket-store.ts';
import { DirectoryStore } from './directory-store.ts';

/**
 * Opens the place of scheduled backups.
 * @param problems records whether the bucket rejects the access key
 * @throws StartError if the settings name none or two, or it cannot be used; NotReadyError if it may be usable later
 */
export async function openBackupStore(settings: Settings, problems?: OperatorProblems): Promise<BackupStore> {
  const { backupDir, backupS3Bucket: bucket, s3Bucket } = settings;
  if ((backupDir === undefined) === (bucket === undefined))
    throw new StartError('Scheduled backups require BACKUP_DIR or BACKUP_S3_BUCKET, and not both.');
  if (bucket !== undefined && bucket === s3Bucket)
    throw new StartError('BACKUP_S3_BUCKET must not be the bucket of S3_BUCKET, because its files are deleted.');
  const where = backupDir === undefined ? `The bucket ${bucket} (BACKUP_S3_BUCKET)` : `BACKUP_DIR ${backupDir}`;
  try {
    if (backupDir !== undefined) return await DirectoryStore.open(backupDir);
    const monitor = problems?.createMonitor('s3-backups', `the bucket ${bucket}`, 'S3_ACCESS_KEY_ID');
    return new BucketStore(
      await S3Bucket.open({ ...toS3Options(settings, String(bucket)), ...(monitor ? { monitor } : {}) }),
    );
  } catch (error) {
    throw toStartError(error, where);
  }
}
