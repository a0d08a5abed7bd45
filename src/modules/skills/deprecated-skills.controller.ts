import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { ApiOperation, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller, CurrentNamespace } from '../auth/access.decorator.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { CreateSkillDto, PublishedSkillDto } from './skill.dto.js';
import { gitErrors, ownNamespace, ApiSkillName } from './skills.access.js';
import { SkillsService } from './skills.service.js';

/** The predecessor of `PUT /skills/{namespace}/{slug}`, which published clients still use. */
@ApiTags('Skills')
@Controller('skills')
export class DeprecatedSkillsController {
  constructor(private readonly skills: SkillsService) {}

  /** Publish a skill from a Git repository. Use `PUT /skills/{namespace}/{slug}` instead. */
  @Post()
  @HttpCode(200)
  @ApiOperation({ deprecated: true })
  @Access('skills:publish')
  @ApiErrors(...gitErrors)
  create(@Body() body: CreateSkillDto, @CurrentCaller() caller: Caller): Promise<PublishedSkillDto> {
    return this.skills.create(caller, body);
  }

  /** Fetch a skill again from its repository. Use `PUT /skills/{namespace}/{slug}` with its Git URL instead. */
  @Post(':namespace/:slug/sync')
  @HttpCode(200)
  @ApiOperation({ deprecated: true })
  @ApiSkillName()
  @Access('skills:publish', ownNamespace)
  @ApiErrors(...gitErrors)
  sync(@Param('slug') slug: string, @CurrentNamespace() namespace: OwnedNamespace): Promise<PublishedSkillDto> {
    return this.skills.sync(namespace, slug);
  }
}
