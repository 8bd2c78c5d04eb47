import { Module } from '@nestjs/common';
import { EdgeModule } from '../edge/edge.module.ts';
import { DocsController } from './docs.controller.ts';

@Module({ imports: [EdgeModule], controllers: [DocsController] })
export class DocsModule {}
