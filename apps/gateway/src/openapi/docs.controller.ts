import { Controller, Get, Header, Res } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { FastifyReply } from 'fastify';
import { PublicBaseUrl } from '../edge/network/public-base-url.ts';
import { HtmlPageContent, OpenApiContent } from './docs.schemas.ts';
import { CONTENT_SECURITY_POLICY, renderDocsPage } from './docs-page.ts';
import { createOpenApiDocument } from './document.ts';
import { jsonContent, Operation } from './operation.ts';
import { listControllerRoutes } from './routes.ts';

@Controller()
export class DocsController {
  /** Rendered once: slow readers share the same bytes. */
  private rendered?: { readonly document: Buffer; readonly page: Buffer };

  constructor(
    private readonly modules: ModulesContainer,
    private readonly address: PublicBaseUrl,
  ) {}

  @Get('openapi.json')
  @Header('content-type', 'application/json; charset=utf-8')
  @Operation({
    id: 'getOpenApi',
    tag: 'Service',
    summary: 'Returns the OpenAPI document of this API',
    auth: 'public',
    cacheable: true,
    response: jsonContent(OpenApiContent),
  })
  getDocument() {
    return this.getDocs().document;
  }

  @Get('docs')
  @Header('content-security-policy', CONTENT_SECURITY_POLICY)
  @Header('referrer-policy', 'no-referrer')
  @Operation({
    id: 'getDocs',
    tag: 'Service',
    summary: 'Returns the documentation of this API as a page',
    auth: 'public',
    cacheable: true,
    response: { 'text/html': HtmlPageContent },
  })
  getPage(@Res({ passthrough: true }) reply: FastifyReply) {
    reply.type('text/html; charset=utf-8');
    return this.getDocs().page;
  }

  /** Rendered on the first request, because the base URL is unknown until the API listens. */
  private getDocs() {
    this.rendered ??= this.renderDocs();
    return this.rendered;
  }

  private renderDocs() {
    const document = createOpenApiDocument(listControllerRoutes(this.modules), this.address.url);
    return { document: Buffer.from(JSON.stringify(document)), page: Buffer.from(renderDocsPage(document)) };
  }
}
