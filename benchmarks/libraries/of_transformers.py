"""Models of transformers, small ones of each kind, and text from a language model."""

import torch
import transformers as tf
from tools import cases, data, fill, ints

small = dict(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
)
sm = dict(small, num_key_value_heads=1)


def text(name, cls, cfg, kw=None, **inp):
    def f():
        c = getattr(tf, cfg)(**(kw if kw is not None else small))
        c.use_cache = False
        return getattr(tf, cls)(c), (), dict({"input_ids": ints(60, 2, 12) + 3}, **inp)

    cases[name] = f


text("bert", "BertForSequenceClassification", "BertConfig", labels=torch.tensor([0, 1]))
text("roberta", "RobertaForMaskedLM", "RobertaConfig")
text(
    "distilbert",
    "DistilBertForMaskedLM",
    "DistilBertConfig",
    dict(vocab_size=64, dim=32, n_layers=2, n_heads=2, hidden_dim=64),
)
text("albert", "AlbertForMaskedLM", "AlbertConfig", dict(small, embedding_size=16))
text("electra", "ElectraForPreTraining", "ElectraConfig", dict(small, embedding_size=16))
text(
    "deberta",
    "DebertaV2ForMaskedLM",
    "DebertaV2Config",
    dict(small, relative_attention=True, pos_att_type=["p2c", "c2p"]),
)
text(
    "gpt2",
    "GPT2LMHeadModel",
    "GPT2Config",
    dict(vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64),
    labels=ints(60, 2, 12),
)
text(
    "gptneo",
    "GPTNeoForCausalLM",
    "GPTNeoConfig",
    dict(vocab_size=64, hidden_size=32, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]]),
)
text("gptneox", "GPTNeoXForCausalLM", "GPTNeoXConfig")
text("gptj", "GPTJForCausalLM", "GPTJConfig", dict(vocab_size=64, n_embd=32, n_layer=2, n_head=2, rotary_dim=8))
text(
    "opt",
    "OPTForCausalLM",
    "OPTConfig",
    dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64, word_embed_proj_dim=32),
)
text("bloom", "BloomForCausalLM", "BloomConfig", dict(vocab_size=64, hidden_size=32, n_layer=2, n_head=2))
text("llama", "LlamaForCausalLM", "LlamaConfig", sm, labels=ints(60, 2, 12))
text("mistral", "MistralForCausalLM", "MistralConfig", sm)
text("mixtral", "MixtralForCausalLM", "MixtralConfig", dict(sm, num_local_experts=4))
text("qwen2", "Qwen2ForCausalLM", "Qwen2Config", sm)
text("qwen3", "Qwen3ForCausalLM", "Qwen3Config", dict(sm, head_dim=16))
text(
    "qwen3moe",
    "Qwen3MoeForCausalLM",
    "Qwen3MoeConfig",
    dict(sm, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32),
)
text("gemma", "GemmaForCausalLM", "GemmaConfig", dict(sm, head_dim=16))
text("gemma2", "Gemma2ForCausalLM", "Gemma2Config", dict(sm, head_dim=16))
text("gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig", dict(sm, head_dim=16))
text("phi", "PhiForCausalLM", "PhiConfig", sm)
text("phi3", "Phi3ForCausalLM", "Phi3Config", dict(sm, pad_token_id=0))
text("falcon", "FalconForCausalLM", "FalconConfig", small)
text("mpt", "MptForCausalLM", "MptConfig", dict(vocab_size=64, d_model=32, n_layers=2, n_heads=2, max_seq_len=64))
text("stablelm", "StableLmForCausalLM", "StableLmConfig", sm)
text("olmo2", "Olmo2ForCausalLM", "Olmo2Config", sm)
text("cohere", "CohereForCausalLM", "CohereConfig", sm)
text("granite", "GraniteForCausalLM", "GraniteConfig", sm)
text("starcoder2", "Starcoder2ForCausalLM", "Starcoder2Config", sm)
text(
    "deepseekv3",
    "DeepseekV3ForCausalLM",
    "DeepseekV3Config",
    dict(
        small,
        n_routed_experts=4,
        n_group=1,
        topk_group=1,
        num_experts_per_tok=2,
        first_k_dense_replace=1,
        moe_intermediate_size=16,
        kv_lora_rank=8,
        q_lora_rank=8,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=8,
    ),
)
text("mamba", "MambaForCausalLM", "MambaConfig", dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, state_size=8))
text(
    "mamba2",
    "Mamba2ForCausalLM",
    "Mamba2Config",
    dict(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=8,
        num_heads=4,
        head_dim=16,
        n_groups=1,
        chunk_size=4,
    ),
)
text(
    "rwkv", "RwkvForCausalLM", "RwkvConfig", dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, context_length=32)
)
text(
    "jamba",
    "JambaForCausalLM",
    "JambaConfig",
    dict(
        sm,
        num_experts=2,
        use_mamba_kernels=False,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
    ),
)
text(
    "t5",
    "T5ForConditionalGeneration",
    "T5Config",
    dict(
        vocab_size=64, d_model=32, num_layers=2, num_heads=2, d_kv=16, d_ff=64, decoder_start_token_id=0, pad_token_id=0
    ),
    labels=ints(60, 2, 8),
)
text(
    "bart",
    "BartForConditionalGeneration",
    "BartConfig",
    dict(
        vocab_size=64,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
    ),
    labels=ints(60, 2, 8),
)
text("longformer", "LongformerForMaskedLM", "LongformerConfig", dict(small, attention_window=4))
text("bigbird", "BigBirdForMaskedLM", "BigBirdConfig", dict(small, attention_type="original_full"))
text("xlnet", "XLNetLMHeadModel", "XLNetConfig", dict(vocab_size=64, d_model=32, n_layer=2, n_head=2, d_inner=64))
text("mpnet", "MPNetForMaskedLM", "MPNetConfig")
text(
    "squeezebert",
    "SqueezeBertForMaskedLM",
    "SqueezeBertConfig",
    dict(
        small,
        embedding_size=32,
        q_groups=1,
        k_groups=1,
        v_groups=1,
        post_attention_groups=1,
        intermediate_groups=1,
        output_groups=1,
    ),
)
text("fnet", "FNetForMaskedLM", "FNetConfig", small)
text(
    "funnel",
    "FunnelForMaskedLM",
    "FunnelConfig",
    dict(vocab_size=64, block_sizes=[1, 1], d_model=32, n_head=2, d_head=16, d_inner=64),
)
text(
    "nystrom", "NystromformerForMaskedLM", "NystromformerConfig", dict(small, segment_means_seq_len=12, num_landmarks=4)
)
text(
    "canine",
    "CanineForSequenceClassification",
    "CanineConfig",
    dict(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_hash_buckets=64,
        downsampling_rate=2,
        local_transformer_stride=4,
    ),
)
text("modernbert", "ModernBertForMaskedLM", "ModernBertConfig", dict(small, pad_token_id=0, reference_compile=False))


def vis(name, cls, cfg, kw, size=32, **inp):
    def f():
        return getattr(tf, cls)(getattr(tf, cfg)(**kw)), (), dict({"pixel_values": data(2, 3, size, size)}, **inp)

    cases[name] = f


vk = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32, patch_size=8)
vis("vit", "ViTForImageClassification", "ViTConfig", vk)
vis("deit", "DeiTForImageClassification", "DeiTConfig", vk)
vis("beit", "BeitForImageClassification", "BeitConfig", vk)
vis("dinov2", "Dinov2ForImageClassification", "Dinov2Config", vk)
vis(
    "swin",
    "SwinForImageClassification",
    "SwinConfig",
    dict(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[1, 2], window_size=4),
)
vis(
    "convnext",
    "ConvNextForImageClassification",
    "ConvNextConfig",
    dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
)
vis(
    "resnet",
    "ResNetForImageClassification",
    "ResNetConfig",
    dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
)
vis(
    "segformer",
    "SegformerForSemanticSegmentation",
    "SegformerConfig",
    dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 1, 2], decoder_hidden_size=16),
    64,
)
vis(
    "detr",
    "DetrForObjectDetection",
    "DetrConfig",
    dict(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_queries=5,
    ),
    64,
)
vis(
    "mobilevit",
    "MobileViTForImageClassification",
    "MobileViTConfig",
    dict(image_size=64, hidden_sizes=[16, 20, 24], neck_hidden_sizes=[8, 8, 16, 24, 32, 40, 48]),
    64,
)
vis(
    "pvt",
    "PvtForImageClassification",
    "PvtConfig",
    dict(image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 1, 1]),
    64,
)
vis(
    "poolformer",
    "PoolFormerForImageClassification",
    "PoolFormerConfig",
    dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    64,
)
vis(
    "levit",
    "LevitForImageClassification",
    "LevitConfig",
    dict(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[1, 1, 1], depths=[1, 1, 1], key_dim=[8, 8, 8]),
    64,
)


def clip():
    c = tf.CLIPConfig(text_config=dict(small), vision_config=dict(vk), projection_dim=16)
    return tf.CLIPModel(c), (), {"input_ids": ints(60, 2, 8) + 3, "pixel_values": data(2, 3, 32, 32)}


cases["clip"] = clip


def siglip():
    c = tf.SiglipConfig(text_config=dict(small), vision_config=dict(vk))
    return tf.SiglipModel(c), (), {"input_ids": ints(60, 2, 8) + 3, "pixel_values": data(2, 3, 32, 32)}


cases["siglip"] = siglip
sound = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    conv_dim=(16, 16),
    conv_stride=(5, 2),
    conv_kernel=(10, 3),
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4,
)
cases["wav2vec2"] = lambda: (
    tf.Wav2Vec2ForCTC(
        tf.Wav2Vec2Config(
            vocab_size=32,
            **sound,
        )
    ),
    (data(2, 400),),
)
cases["whisper"] = lambda: (
    tf.WhisperForConditionalGeneration(
        tf.WhisperConfig(
            vocab_size=64,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            num_mel_bins=8,
            max_source_positions=16,
            max_target_positions=16,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    ),
    (data(2, 8, 32),),
    {"decoder_input_ids": ints(60, 2, 6) + 3},
)
cases["hubert"] = lambda: (
    tf.HubertModel(
        tf.HubertConfig(
            **sound,
        )
    ),
    (data(2, 400),),
)
cases["timesformer"] = lambda: (
    tf.TimesformerForVideoClassification(
        tf.TimesformerConfig(
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            image_size=32,
            patch_size=8,
            num_frames=2,
        )
    ),
    (data(1, 2, 3, 32, 32),),
)
cases["patchtst"] = lambda: (
    tf.PatchTSTForPrediction(
        tf.PatchTSTConfig(
            num_input_channels=2,
            context_length=32,
            patch_length=4,
            patch_stride=4,
            d_model=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            ffn_dim=32,
            prediction_length=4,
        )
    ),
    (data(2, 32, 2),),
)
cases["decision"] = lambda: (
    tf.DecisionTransformerModel(
        tf.DecisionTransformerConfig(state_dim=4, act_dim=2, hidden_size=32, n_layer=1, n_head=2)
    ),
    (),
    dict(
        states=data(1, 5, 4),
        actions=data(1, 5, 2),
        rewards=data(1, 5, 1),
        returns_to_go=data(1, 5, 1),
        timesteps=torch.arange(5)[None],
        attention_mask=torch.ones(1, 5),
    ),
)


def gen():
    m = tf.LlamaForCausalLM(tf.LlamaConfig(**sm))
    fill(m)
    m.eval()

    class G(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                a = m.generate(x, max_new_tokens=8, do_sample=False, pad_token_id=0)
                b = m.generate(x, max_new_tokens=6, num_beams=3, pad_token_id=0, do_sample=False)
            return a.float(), b.float()

    return G(), (ints(60, 2, 5) + 3,)


cases["generate"] = gen
