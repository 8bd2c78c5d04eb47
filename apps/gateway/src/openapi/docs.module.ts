import { Module } from '@nestjs/common';
import { EdgeModule } from '../edge/edge.module.ts';
import { DocsController } from './docs.controller.ts';

/** The description of the interface, for programs and for people. */
@Module({ imports: [EdgeModule], controllers: [DocsController] })
export class DocsModule {}
