import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query, Req, Res } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiCreatedResponse, ApiOkResponse, ApiOperation, ApiTags } from '#api-docs';
import type { Request, Response } from 'express';
import { ErrorForm } from '../../platform/errors/error-form.decorator.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { answerPublication, readArchive } from './skill-answers.js';
import {
  CreateSkillDto,
  SkillQueryDto,
  DeletedSkillDto,
  PublishedSkillDto,
  SetSkillDto,
  SkillDto,
  SkillListDto,
} from './skill.dto.js';
import { gitErrors, ownNamespace, skillNotFound, publishErrors, forbidden, ApiSkillName } from './skills.access.js';
import { SkillsService } from './skills.service.js';

const replaced = { type: PublishedSkillDto, description: 'There was one, and it is replaced.' };

@ApiTags('Skills')
@ErrorForm('skills', (_path, method) => (method === 'PUT' || method === 'POST' ? 'publishing' : 'registry'))
@Controller('skills')
export class SkillsController {
  constructor(private readonly skillsService: SkillsService) {}

  /** Search skills, or browse them. With `q`, the best match comes first; without, the newest skill. */
  @Get()
  @Access('skills:read', { anonymous: true })
  @ApiErrors(400)
  list(@Query() query: SkillQueryDto): Promise<SkillListDto> {
    return this.skillsService.list(query);
  }

  /** Get a skill with its instructions. */
  @Get(':namespace/:slug')
  @ApiSkillName()
  @Access('skills:read', { anonymous: true })
  @ApiErrors(skillNotFound)
  get(@Param('namespace') namespace: string, @Param('slug') slug: string): Promise<SkillDto> {
    return this.skillsService.get({ namespace, slug });
  }

  /**
   * Publish a skill from a Git repository. Slipway fetches the repository once; repeat the request to fetch it again. Only
   * the folder that holds SKILL.md is stored: at most 1,000 files of 5 MB each and 50 MB together.
   */
  @Put(':namespace/:slug')
  @ApiSkillName()
  @ApiCreatedResponse({ type: PublishedSkillDto })
  @ApiOkResponse(replaced)
  @Access('skills:publish', ownNamespace)
  @ApiErrors(...gitErrors)
  async set(
    @Param('slug') slug: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Body() { gitUrl }: SetSkillDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<PublishedSkillDto> {
    return answerPublication(response, await this.skillsService.publishFromGit(namespace, slug, gitUrl));
  }

  /**
   * Publish a skill from a zip. The zip holds the skill's folder or the content of it: SKILL.md with `name` and
   * `description` in its front matter, and any scripts, references and assets. At most 25 MB, and unpacked 1,000 files of
   * 5 MB each and 50 MB together. Hidden folders and `node_modules` are left out.
   */
  @Put(':namespace/:slug/upload')
  @ApiSkillName()
  @ApiConsumes('multipart/form-data')
  @ApiBody({
    schema: {
      type: 'object',
      required: ['archive'],
      properties: { archive: { type: 'string', format: 'binary', description: 'The zip.' } },
    },
  })
  @ApiCreatedResponse({ type: PublishedSkillDto })
  @ApiOkResponse(replaced)
  @Access('skills:publish', ownNamespace)
  @ApiErrors(...publishErrors)
  async upload(
    @Param('slug') slug: string,
    @CurrentNamespace() namespace: OwnedNamespace,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<PublishedSkillDto> {
    const archive = await readArchive(request);
    return answerPublication(response, await this.skillsService.publishFromArchive(namespace, slug, archive));
  }

  /** Delete a skill with its files. Spec 4.14. */
  @Delete(':namespace/:slug')
  @ApiSkillName()
  @Access('skills:write', ownNamespace)
  @ApiErrors(forbidden, skillNotFound)
  remove(@Param('slug') slug: string, @CurrentNamespace() namespace: OwnedNamespace): Promise<DeletedSkillDto> {
    return this.skillsService.remove(namespace, slug);
  }

  /** Publish a skill from a Git repository. Use `PUT /skills/{namespace}/{slug}` instead. */
  @Post()
  @HttpCode(200)
  @ApiOperation({ deprecated: true })
  @Access('skills:publish')
  @ApiErrors(...gitErrors)
  create(@Body() body: CreateSkillDto, @CurrentCaller() caller: Caller): Promise<PublishedSkillDto> {
    return this.skillsService.create(caller, body);
  }

  /** Fetch a skill again from its repository. Use `PUT /skills/{namespace}/{slug}` with its Git URL instead. */
  @Post(':namespace/:slug/sync')
  @HttpCode(200)
  @ApiOperation({ deprecated: true })
  @ApiSkillName()
  @Access('skills:publish', ownNamespace)
  @ApiErrors(...gitErrors)
  sync(@Param('slug') slug: string, @CurrentNamespace() namespace: OwnedNamespace): Promise<PublishedSkillDto> {
    return this.skillsService.sync(namespace, slug);
  }
}
