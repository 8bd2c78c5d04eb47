import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DueStream, RescheduledStream, WorkflowSchedule } from '#kernel';

const NOON = '2026-11-20T12:00:00.000Z';
const ONE = '2026-11-20T13:00:00.000Z';
const TWO = '2026-11-20T14:00:00.000Z';
const TOKEN = 5;

/** Tests that every adapter of the `WorkflowSchedule` port must pass. `open` returns an empty schedule. */
export function workflowScheduleContract(name: string, open: () => Promise<WorkflowSchedule>): void {
  describe(`${name}: a stream`, () => {
    let table: WorkflowSchedule;
    beforeEach(async () => {
      table = await open();
    });

    const findIds = async (now: string, workflow = 'w') => (await table.findDue(workflow, now, 10)).map(({ id }) => id);
    const findFirst = async (now: string): Promise<DueStream> => (await table.findDue('w', now, 1))[0] as DueStream;
    const putOff = (rows: readonly RescheduledStream[], token = TOKEN) => table.reschedule('w', token, rows);

    test('is due for its workflow from the time of its wake-up', async () => {
      await table.wake('w', ['a', 'a', 'b'], ONE);
      expect(await findIds(NOON)).toEqual([]);
      expect((await findIds(ONE)).toSorted()).toEqual(['a', 'b']);
      expect(await findIds(TWO, 'other')).toEqual([]);
    });

    test('is returned in the order of due times among equally urgent ones, up to the limit', async () => {
      await table.wake('w', ['late'], TWO);
      await table.wake('w', ['early'], NOON);
      await table.wake('w', ['middle'], ONE);
      expect(await findIds(TWO)).toEqual(['early', 'middle', 'late']);
      expect((await table.findDue('w', TWO, 2)).map(({ id }) => id)).toEqual(['early', 'middle']);
    });

    test('that was woken or has failed is returned before postponed ones', async () => {
      await table.wake('w', ['again', 'failed', 'woken'], NOON);
      const rows = await table.findDue('w', NOON, 10);
      expect(rows.map(({ ahead }) => ahead)).toEqual([true, true, true]);
      const createRow = (id: string, at: string, failures: number) => ({
        ...rows.find((row) => row.id === id),
        at,
        failures,
      });
      await putOff([
        createRow('again', NOON, 0),
        createRow('failed', ONE, 1),
        createRow('woken', ONE, 0),
      ] as RescheduledStream[]);
      await table.wake('w', ['woken'], TWO);
      expect(await findIds(NOON)).toEqual(['again']);
      expect(await findIds(TWO)).toEqual(['failed', 'woken', 'again']);
      expect((await table.findDue('w', TWO, 10)).map(({ ahead }) => ahead)).toEqual([true, true, false]);
    });

    test('that was woken without urgency is returned after urgent ones, unless it was urgent already', async () => {
      await table.wake('w', ['early'], NOON, { isUrgent: false });
      await table.wake('w', ['ahead', 'both'], ONE);
      await table.wake('w', ['both'], ONE, { isUrgent: false });
      expect((await table.findDue('w', TWO, 10)).map(({ id, ahead }) => [id, ahead])).toEqual([
        ...(await findIds(TWO)).slice(0, 2).map((id) => [id, true]),
        ['early', false],
      ]);
      expect((await findIds(TWO)).slice(0, 2).toSorted()).toEqual(['ahead', 'both']);
    });

    test('that has failed more than three times is no longer urgent', async () => {
      await table.wake('w', ['a'], NOON);
      for (const failures of [3, 4]) {
        await putOff([{ ...(await findFirst(NOON)), at: NOON, failures }]);
        expect((await findFirst(NOON)).ahead).toBe(failures === 3);
      }
    });

    test('is due at the earlier one of its due time and the time of another wake-up', async () => {
      await table.wake('w', ['a'], ONE);
      await table.wake('w', ['a'], TWO);
      expect(await findIds(ONE)).toEqual(['a']);
      await table.wake('w', ['a'], NOON);
      expect(await findIds(NOON)).toEqual(['a']);
    });

    test('can be postponed and removed', async () => {
      await table.wake('w', ['a', 'b'], NOON);
      const rows = await table.findDue('w', NOON, 10);
      await putOff(rows.map((row) => ({ ...row, at: row.id === 'a' ? TWO : null })));
      expect(await findIds(ONE)).toEqual([]);
      expect(await findIds(TWO)).toEqual(['a']);
    });

    test('that was woken after it was read is neither postponed nor removed', async () => {
      await table.wake('w', ['a'], NOON);
      const row = await findFirst(NOON);
      await table.wake('w', ['a'], ONE);
      await putOff([{ ...row, at: TWO }]);
      await putOff([{ ...row, at: null }]);
      expect(await findIds(NOON)).toEqual(['a']);
    });

    test('is not postponed under an older fencing token', async () => {
      await table.wake('w', ['a'], NOON);
      const row = await findFirst(NOON);
      await putOff([{ ...row, at: ONE }], TOKEN);
      await putOff([{ ...row, at: TWO }], TOKEN - 1);
      expect(await findIds(ONE)).toEqual(['a']);
    });

    test('that was removed and woken again is not changed by a process that read it before', async () => {
      await table.wake('w', ['a'], NOON);
      const before = await findFirst(NOON);
      await putOff([{ ...before, at: null }]);
      await table.wake('w', ['a'], ONE);
      await putOff([{ ...before, at: TWO }]);
      await putOff([{ ...before, at: null }]);
      expect(await findIds(ONE)).toEqual(['a']);
    });

    test('that was woken under a fencing token is not changed under an older one, even if both have woken it', async () => {
      await table.wake('w', ['a'], NOON, { token: TOKEN });
      for (const at of [TWO, null]) await putOff([{ ...(await findFirst(NOON)), at }], TOKEN - 1);
      await table.wake('w', ['a'], NOON, { token: TOKEN - 1 });
      await table.wake('w', ['a'], NOON);
      for (const at of [TWO, null]) await putOff([{ ...(await findFirst(NOON)), at }], TOKEN - 1);
      expect(await findIds(NOON)).toEqual(['a']);
      await putOff([{ ...(await findFirst(NOON)), at: null }], TOKEN);
      expect(await findIds(TWO)).toEqual([]);
    });

    test('is listed as waiting while it is postponed, and not after its removal', async () => {
      await table.wake('w', ['a', 'b'], NOON);
      const rows = await table.findDue('w', NOON, 10);
      await putOff(rows.map((row) => ({ ...row, at: row.id === 'a' ? TWO : null })));
      expect([await table.listWaiting('w'), await table.listWaiting('other')]).toEqual([['a'], []]);
    });

    test('retains its number of failures until it is woken', async () => {
      await table.wake('w', ['a'], NOON);
      await putOff([{ ...(await findFirst(NOON)), at: ONE, failures: 3 }]);
      expect((await findFirst(ONE)).failures).toBe(3);
      await table.wake('w', ['a'], ONE);
      expect((await findFirst(ONE)).failures).toBe(0);
    });
  });
}
