import 'reflect-metadata';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Inject, Logger, Module, type OnApplicationBootstrap, type Type } from '@nestjs/common';
import { CqrsModule, EventBus, EventsHandler, type IEventHandler } from '@nestjs/cqrs';
import { createLog, readSettings } from '#foundation';
import { openContext } from './container.ts';
import { NestLog } from './nest-log.ts';
import { openRole } from './role.ts';

let stdout: jest.SpiedFunction<typeof process.stdout.write>;

beforeEach(() => {
  stdout = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
});
afterEach(() => stdout.mockRestore());

function parseLines(): readonly Record<string, unknown>[] {
  return stdout.mock.calls.map(([line]) => JSON.parse(String(line)));
}

const open = (module: Type, level = 'info') =>
  openRole('test', readSettings({}), createLog(level), async (role) => {
    await openContext(role, [module]);
    return {};
  });

class Payment {}

@EventsHandler(Payment)
class FailingHandler implements IEventHandler<Payment> {
  handle(): void {
    throw new Error('no such account');
  }
}

@Module({ imports: [CqrsModule.forRoot()], providers: [FailingHandler] })
class Payments implements OnApplicationBootstrap {
  constructor(@Inject(EventBus) private readonly bus: EventBus) {}

  onApplicationBootstrap(): void {
    this.bus.publish(new Payment());
  }
}

@Module({})
class Idle {}

test('an error that only Nest catches is one line of the log', async () => {
  await (await open(Payments)).close();

  expect(parseLines()).toEqual([
    {
      level: 'error',
      time: expect.any(String),
      context: 'EventBus',
      err: { type: 'Error', message: 'no such account', stack: expect.stringContaining('FailingHandler.handle') },
      msg: expect.stringContaining('has thrown an unhandled exception'),
    },
  ]);
});

@Module({ providers: [{ provide: 'broken', useFactory: () => Promise.reject(new Error('cannot start')) }] })
class Broken {}

test('an error that prevents the start is left to the process, which logs it', async () => {
  await expect(open(Broken)).rejects.toThrow('cannot start');

  expect(parseLines()).toEqual([]);
});

test('the messages of a start are logged at the level debug, with their context', async () => {
  await (await open(Idle, 'debug')).close();

  expect(parseLines()).toContainEqual(
    expect.objectContaining({ level: 'debug', context: 'InstanceLoader', msg: 'Idle dependencies initialized' }),
  );
  expect(parseLines().filter(({ level }) => level !== 'debug')).toEqual([]);
});

test.each([
  ['fatal', 'fatal'],
  ['error', 'error'],
  ['warn', 'warn'],
  ['log', 'debug'],
  ['debug', 'debug'],
  ['verbose', 'trace'],
] as const)('a message that Nest logs with %s has the level %s', (method, level) => {
  Logger.overrideLogger(new NestLog(createLog('trace')));
  new Logger('Part')[method]('text');

  expect(parseLines()).toEqual([{ level, time: expect.any(String), context: 'Part', msg: 'text' }]);
});

test('an error without a text is logged with its own message', () => {
  Logger.overrideLogger(new NestLog(createLog('info')));
  new Logger('Part').error(new TypeError('not a stream'));

  const err = { type: 'TypeError', message: 'not a stream', stack: expect.any(String) };
  expect(parseLines()).toMatchObject([{ level: 'error', context: 'Part', err, msg: 'not a stream' }]);
});
