import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { Foundation, type Running } from '#infra';
import { StoresModule } from '#modules';
import { startProjector } from './projector.ts';

/** The read side: facts become rows. */
@Module({ imports: [StoresModule] })
export class ProjectorModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private running: Running | undefined;

  constructor(private readonly foundation: Foundation) {}

  async onApplicationBootstrap(): Promise<void> {
    this.running = await startProjector(this.foundation);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.close();
  }
}
