import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { ApiEtag, ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access } from '../auth/access.decorator.js';
import { sendBundle, sendFile } from './skill-answers.js';
import { SkillFilesService } from './skill-files.service.js';
import { SkillIndexDto } from './skill.dto.js';
import { skillNotFound, ApiSkillName } from './skills.access.js';

const binary = { schema: { type: 'string', format: 'binary' } } as const;

/** Files for installers, which send no key: they need `PUBLIC_READS=true`. */
@ApiTags('Skills')
@Controller('skills/:namespace/:slug')
@ApiSkillName()
export class SkillFilesController {
  constructor(private readonly files: SkillFilesService) {}

  /** Download a skill as a zip. The same skill is the same zip. */
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
    await sendBundle(request, response, await this.files.bundle({ namespace, slug }));
  }

  /**
   * Index of a skill for installers. `npx skills add {PUBLIC_URL}/skills/{namespace}/{slug}` begins here. Installers send
   * no key: they get through with `PUBLIC_READS=true` only.
   */
  @Get('.well-known/skills/index.json')
  @Access('skills:read', { anonymous: true })
  @ApiErrors(skillNotFound)
  index(@Param('namespace') namespace: string, @Param('slug') slug: string): Promise<SkillIndexDto> {
    return this.files.index({ namespace, slug });
  }

  /**
   * One file of a skill, as it was published. Installers put the skill's name in front of the path, `skill view` does
   * not; both work. Neither sends a key: they get through with `PUBLIC_READS=true` only.
   */
  @Get('.well-known/skills/*path')
  @ApiParam({ name: 'path', description: 'The file.', example: 'SKILL.md', type: String })
  @ApiOkResponse({ description: 'The file.', content: { 'text/markdown': { schema: { type: 'string' } } } })
  @Access('skills:read', { anonymous: true })
  @ApiErrors(skillNotFound)
  async file(
    @Param('namespace') namespace: string,
    @Param('slug') slug: string,
    @Param('path') path: string[],
    @Res() response: Response,
  ): Promise<void> {
    sendFile(response, await this.files.read({ namespace, slug }, path.join('/')));
  }
}
