import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { injectByName } from './inject-by-name.ts';

class Engine {
  readonly cylinders = 4;
}
abstract class Radio {
  abstract readonly station: string;
}
class Car {
  constructor(
    readonly cylinders: number,
    readonly station: string,
  ) {}
}

@Module({
  providers: [
    Engine,
    { provide: Radio, useValue: { station: 'DRS 3' } },
    injectByName(Car, { radio: Radio, engine: Engine }, async ({ engine, radio }) => {
      return new Car(engine.cylinders, radio.station);
    }),
  ],
})
class Garage {}

test('a factory gets each dependency under its name, also those with an abstract class as token', async () => {
  const context = await NestFactory.createApplicationContext(Garage, { logger: false });
  expect(context.get(Car)).toEqual(new Car(4, 'DRS 3'));
  await context.close();
});
