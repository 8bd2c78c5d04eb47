import { expect, test } from '@jest/globals';
import { OperatorProblems } from '#application';
import { readSettings } from '#foundation';
import { createTestRuntime } from '#testing';
import { StubServer } from '../../../../libs/testing/src/servers/stub-server.ts';
import { openBackupStore } from './open-backup-store.ts';

test('an access key that the bucket of backups rejects is named until it is accepted', async () => {
  const server = new StubServer();
  const url = await server.listen();
  server.handler = (response) => void response.writeHead(200).end();
  const rejected = new OperatorProblems(createTestRuntime());
  const store = await openBackupStore(
    readSettings({
      S3_ENDPOINT: url,
      BACKUP_S3_BUCKET: 'backups',
      S3_ACCESS_KEY_ID: 'id',
      S3_SECRET_ACCESS_KEY: 'key',
    }),
    rejected,
  );

  server.handler = (response) => void response.writeHead(403).end();
  await expect(store.list()).rejects.toThrow();
  const during = rejected.listRejected();
  server.handler = (response) => void response.writeHead(200).end('<ListBucketResult></ListBucketResult>');
  await store.list();

  expect([during, rejected.listRejected()]).toEqual([['s3-backups'], []]);
  store.close();
  await server.close();
});
