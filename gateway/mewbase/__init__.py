"""mewbase's protocol of BSON documents, over the streams that stream clients use."""
