import { applyDecorators, Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '#api-docs';
import type { Request, Response } from 'express';
import { ApiEtag, ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access } from '../auth/access.decorator.js';
import { sendBundle, sendFile } from './skill-answers.js';
import { SkillFilesService } from './skill-files.service.js';
import { SkillDiscoveryDto, SkillIndexDto } from './skill.dto.js';
import { skillNotFound, ApiSkillName } from './skills.access.js';

const ApiNamespace = () =>
  applyDecorators(
    ApiParam({ name: 'namespace', description: 'The namespace.', example: 'acme' }),
    ApiErrors(skillNotFound),
  );

const ApiFile = () =>
  applyDecorators(
    ApiParam({ name: 'path', description: 'The file.', example: 'SKILL.md', type: String }),
    ApiOkResponse({ description: 'The file.', content: { 'text/markdown': { schema: { type: 'string' } } } }),
    ApiErrors(skillNotFound),
  );

const binary = { schema: { type: 'string', format: 'binary' } } as const;

/** Indexes of many skills, for installers, which send no key: they need `PUBLIC_READS=true`. */
@ApiTags('Skills')
@Controller()
export class SkillIndexesController {
  constructor(private readonly skillFilesService: SkillFilesService) {}

  /**
   * List all skills (Agent Skills discovery 0.2.0). If several skills have the same name, the oldest is listed.
   * A digest matches the bytes at `url` until the skill is published again.
   */
  @Get('.well-known/agent-skills/index.json')
  @Access('skills:read', { anonymous: true })
  discover(): Promise<SkillDiscoveryDto> {
    return this.skillFilesService.discover({});
  }

  /** List skills of a namespace (Agent Skills discovery 0.2.0). */
  @Get('skills/:namespace/.well-known/agent-skills/index.json')
  @Access('skills:read', { anonymous: true })
  @ApiNamespace()
  discoverIn(@Param('namespace') namespace: string): Promise<SkillDiscoveryDto> {
    return this.skillFilesService.discover({ namespace });
  }

  /** List all skills (discovery 0.1.0). The files have paths relative to the index. */
  @Get('.well-known/skills/index.json')
  @Access('skills:read', { anonymous: true })
  index(): Promise<SkillIndexDto> {
    return this.skillFilesService.indexAll({});
  }

  /** List skills of a namespace (discovery 0.1.0). The files have paths relative to the index. */
  @Get('skills/:namespace/.well-known/skills/index.json')
  @Access('skills:read', { anonymous: true })
  @ApiNamespace()
  indexIn(@Param('namespace') namespace: string): Promise<SkillIndexDto> {
    return this.skillFilesService.indexAll({ namespace });
  }

  /** One file of a skill that the index of all skills lists. */
  @Get('.well-known/skills/:name/*path')
  @Access('skills:read', { anonymous: true })
  @ApiParam({ name: 'name', description: 'The skill.', example: 'code-review' })
  @ApiFile()
  async file(@Param('name') name: string, @Param('path') path: string[], @Res() response: Response): Promise<void> {
    sendFile(response, await this.skillFilesService.readNamed(undefined, name, path.join('/')));
  }

  /** One file of a skill that the index of its namespace lists. */
  @Get('skills/:namespace/.well-known/skills/:name/*path')
  @Access('skills:read', { anonymous: true })
  @ApiParam({ name: 'namespace', description: 'The namespace.', example: 'acme' })
  @ApiParam({ name: 'name', description: 'The skill.', example: 'code-review' })
  @ApiFile()
  async fileIn(
    @Param('namespace') namespace: string,
    @Param('name') name: string,
    @Param('path') path: string[],
    @Res() response: Response,
  ): Promise<void> {
    sendFile(response, await this.skillFilesService.readNamed(namespace, name, path.join('/')));
  }
}

/** Files for installers, which send no key: they need `PUBLIC_READS=true`. */
@ApiTags('Skills')
@Controller('skills/:namespace/:slug')
@ApiSkillName()
export class SkillFilesController {
  constructor(private readonly skillFilesService: SkillFilesService) {}

  /** Download a skill as a zip. The same skill gives the same zip, byte for byte. */
  @Get('download')
  @ApiEtag()
  @ApiOkResponse({ description: 'The zip.', content: { 'application/zip': binary } })
  @Access('skills:read', { anonymous: true })
  @ApiErrors(skillNotFound)
  async download(
    @Param('namespace') namespace: string,
    @Param('slug') slug: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await sendBundle(request, response, await this.skillFilesService.bundle({ namespace, slug }));
  }

  /**
   * Index of a skill for installers. `npx skills add {PUBLIC_URL}/skills/{namespace}/{slug}` begins here. Installers send
   * no key: they get through with `PUBLIC_READS=true` only.
   */
  @Get('.well-known/skills/index.json')
  @Access('skills:read', { anonymous: true })
  @ApiErrors(skillNotFound)
  index(@Param('namespace') namespace: string, @Param('slug') slug: string): Promise<SkillIndexDto> {
    return this.skillFilesService.index({ namespace, slug });
  }

  /** Index of one skill by Agent Skills discovery 0.2.0. */
  @Get('.well-known/agent-skills/index.json')
  @Access('skills:read', { anonymous: true })
  @ApiErrors(skillNotFound)
  discover(@Param('namespace') namespace: string, @Param('slug') slug: string): Promise<SkillDiscoveryDto> {
    return this.skillFilesService.discover({ namespace, slug });
  }

  /**
   * One file of a skill, as it was published. Installers put the skill's name in front of the path, `skill view` does
   * not; both work. Neither sends a key: they get through with `PUBLIC_READS=true` only.
   */
  @Get('.well-known/skills/*path')
  @ApiFile()
  @Access('skills:read', { anonymous: true })
  async file(
    @Param('namespace') namespace: string,
    @Param('slug') slug: string,
    @Param('path') path: string[],
    @Res() response: Response,
  ): Promise<void> {
    sendFile(response, await this.skillFilesService.read({ namespace, slug }, path.join('/')));
  }
}
