import { expect, test } from '@jest/globals';
import { PageOutOfRangeError, type QueryHistory } from '#projections';
import { HistoryReadPool } from './history-read-pool.ts';

test('throws PageOutOfRangeError for a page beyond the scan limit, which is no failure of the database', async () => {
  const history: Pick<QueryHistory, 'read'> = { read: () => Promise.reject(new PageOutOfRangeError()) };
  const reads = new HistoryReadPool(history);

  const read = reads.read({ accountId: 'a1' }, 102, 100);

  await expect(read).rejects.toThrow(PageOutOfRangeError);
});
